"""The world in which the examples of the document are true: its objects, their versions, and one object for each act.

A reader who copies an example changes its names and ids; here they are the ones that the examples have, so that each
example can be sent as it is.
"""

from __future__ import annotations

import re
from typing import Any

from django.utils import timezone

from tests import quota_writes
from tests.api.cast import A100, H200
from tests.matrix.expectations import ELSEWHERE
from tests.matrix.stage import Stage, address, routes
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import BusinessLine, Membership, Project, Tenant
from tidesched_web.accounts.selectors import access_of
from tidesched_web.api.document.examples import BASE_VERSION, DRIFT_IDS, VERSION
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.quota.models import Drift, PriorityClass, Queue, TidePlan
from tidesched_web.scheduling.models import Alert


class Story(Stage):
    """The stage of the matrix, and what the examples name beside it."""

    def __init__(self) -> None:
        super().__init__()
        world = self.world
        acme, east = world.tenants["acme"], world.clusters["east"]
        self.admin = access_of(world.users["admin"])
        chat = quota_writes.ensure_project(tenant=acme, slug="chat", actor="tests")
        self.idle: dict[str, int] = {
            "projects": quota_writes.ensure_project(tenant=acme, slug="idle", actor="tests").pk,
            "business-lines": quota_writes.ensure_business_line(tenant=acme, slug="idle", actor="tests").pk,
            "tenants": quota_writes.ensure_tenant(slug="idle", actor="tests").pk,
            "queues": quota_writes.create_queue(
                cluster=east, name="idle", service_type="inference", project=chat, card_quota={}, actor="tests"
            ).pk,
            "card-types": CardType.objects.create(cluster=east, name="NVIDIA-L40S", discovered=False).pk,
            "clusters": self._removed().pk,
        }
        Cluster.objects.filter(pk=east.pk).update(mode="quota")
        accounts.create_user(username="mei", password=None, actor="tests")
        self._drift()
        self.acts = {**self._changes(), "hand-back": self._looked_after().pk}
        west = world.clusters["west"]
        Cluster.objects.filter(pk=west.pk).update(paused_at=timezone.now(), paused_by="tests", paused_reason="drill")
        self._versions()

    def _removed(self) -> Cluster:
        return Cluster.objects.create(
            name="Old hall", slug="old-hall", api_url="https://10.0.0.8:6443", disconnected_at=timezone.now()
        )

    def _looked_after(self) -> Alert:
        now = timezone.now()
        return Alert.objects.create(
            cluster=self.world.clusters["east"], key="node_lost:n7", severity="warning", code="node_lost",
            message="n7 has left", raised_at=now, acknowledged_at=now, acknowledged_by="mei",
        )  # fmt: skip

    def _drift(self) -> None:
        kept = Drift.objects.get(pk=self.keys["drift"])
        for pk, name in zip(DRIFT_IDS, ("acme-train", "rival-train"), strict=True):
            kept.pk, kept.name, kept.queue = pk, name, self.world.queues[name]
            kept.save(force_insert=True)

    def _changes(self) -> dict[str, int]:
        """One change for each act that another would end, or that another state does not allow."""
        east, owner = self.world.clusters["east"], access_of(self.world.users["owner"])

        def draft(document: dict[str, Any], **state: Any) -> int:
            edits = {"queue/acme-online": document}
            made = changes.draft(cluster=east, edits=edits, access=owner, reason="more users", source="api")
            QuotaChange.objects.filter(pk=made.pk).update(**state)
            return made.pk

        now = timezone.now()
        Cluster.objects.filter(pk=east.pk).update(approval_required=True)
        east.refresh_from_db()
        waiting = draft({"card_quota": {H200: 7}}, state=ChangeState.WAITING, submitted_at=now)
        Cluster.objects.filter(pk=east.pk).update(approval_required=False)
        east.refresh_from_db()
        applied, failed = (
            changes.apply(change=QuotaChange.objects.get(pk=draft({"card_quota": {A100: cards}})), access=owner).pk
            for cards in (2, 0)
        )
        QuotaChange.objects.filter(pk=failed).update(state=ChangeState.FAILED)
        return {"approve": waiting, "rollback": applied, "retry": failed}

    def _versions(self) -> None:
        """The examples were looked at in this version, of objects and of the tree."""
        for model in (Cluster, CardType, Queue, PriorityClass, TidePlan, QuotaChange, Tenant, Project, BusinessLine):
            model._base_manager.update(version=VERSION)
        Membership._base_manager.update(version=VERSION)
        QuotaChange._base_manager.update(base_version=BASE_VERSION)


# Operation → the object that it is asked about, where it is not the one that all others are asked about.
_OTHERS = {
    "business_lines_destroy": ("idle", "business-lines"),
    "projects_destroy": ("idle", "projects"),
    "tenants_destroy": ("idle", "tenants"),
    "queues_destroy": ("idle", "queues"),
    "card_types_destroy": ("idle", "card-types"),
    "clusters_destroy": ("idle", "clusters"),
    "alerts_hand_back_create": ("acts", "hand-back"),
    "quota_changes_approve_create": ("acts", "approve"),
    "quota_changes_retry_create": ("acts", "retry"),
    "quota_changes_rollback_create": ("acts", "rollback"),
}


def named_by(story: Story, paths: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Operation → the object of the story that its address names."""
    found: dict[str, dict[str, int]] = {}
    for route in routes():
        if not route.name.startswith("api:") or route.name in ELSEWHERE:
            continue
        path = address(story, route).partition("?")[0]
        for template in sorted(paths, key=lambda one: one.count("{")):
            match = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template), path)
            if match is not None:
                keys = {f"path.{name}": int(value) for name, value in match.groupdict().items()}
                found |= {one["operationId"]: keys for one in paths[template].values() if keys}
                break
    for operation, (kind, name) in _OTHERS.items():
        found[operation] = {"path.id": getattr(story, kind)[name]}
    found["clusters_resume_create"] = {"path.id": story.world.clusters["west"].pk}
    return found
