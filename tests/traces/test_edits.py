"""What edits send to the cluster, and what they write into the audit log: by REST, by change, and by the pages."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from tests.api.cast import ApiClient
from tests.api.page_forms import post_opened
from tests.cluster.servers import SimulatedServer
from tests.traces import expected
from tests.web.changes import ground as ground_module
from tidesched_web.accounts.models import BusinessLine, Membership, Project, Tenant, User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.tasks import sweep
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.quota.models import NamespaceGrant, PriorityClass, Queue, TidePlan
from tidesched_web.quota.tasks import push_pending

STEPS = yaml.load((Path(__file__).parent / "edits.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
_NAMED: dict[str, tuple[Any, str]] = {
    "queues": (Queue, "name"), "grants": (NamespaceGrant, "namespace"), "priority-classes": (PriorityClass, "name"),
    "card-types": (CardType, "name"), "tenants": (Tenant, "slug"), "projects": (Project, "slug"),
    "business-lines": (BusinessLine, "slug"), "members": (Membership, "user__username"), "users": (User, "username"),
    "tide-plans": (TidePlan, "name"), "clusters": (Cluster, "slug"),
}  # fmt: skip


def _number(path: str, name: str) -> int:
    if name == "last":
        return QuotaChange.objects.latest("pk").pk
    model, field = _NAMED[path.partition("/")[0]]
    return model.objects.filter(**{field: name}).values_list("pk", flat=True).first() or 0


class _Recorder:
    """Carries the steps out one by one, and keeps what each has sent and noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ground: ground_module.Ground) -> None:
        self.clients = {name: ApiClient(user) for name, user in ground.users.items()}
        self.manifests, self.audit, self._sent = [], [], []
        send = KubernetesClient.send

        def noted(client: KubernetesClient, method: str, path: str, body: Any = None, **more: Any) -> Any:
            if method != "GET" and "kube-system" not in (path + str(body)):  # the own Lease: when it is due
                self._sent.append((method, path, body))
            return send(client, method, path, body, **more)

        monkeypatch.setattr(KubernetesClient, "send", noted)

    def step(self, does: str, sends: Any = None, **asked: str) -> None:
        ((who, request),) = asked.items()
        after, self._sent = AuditEntry.objects.count(), []
        answer = self._done(who, *request.split(" "), sends or {})
        sweep()
        push_pending()
        heading = f"# {does}: {who} {request}{answer}"
        sent = sorted(f"{method} {path}\n{expected.pretty(body)}" for method, path, body in self._sent)
        self.manifests += [heading, *sent, ""]
        self.audit += [heading, *map(_entry, AuditEntry.objects.order_by("pk")[after:]), ""]

    def _done(self, who: str, method: str, path: str, body: Any) -> str:
        timezone.now.now += dt.timedelta(hours=int(path)) if method == "wait" else dt.timedelta(milliseconds=1)
        if method == "wait":
            return ""
        body = {name: value for name, value in {"reason": "because", **body}.items() if name != "reason" or value}
        place = re.sub(r"<([^>]+)>", lambda match: str(_number(path, match[1])), path)
        if method == "FORM":
            chat = str(Project.objects.get(slug="chat", tenant__slug="acme").pk)
            typed = {name: value.replace("<chat>", chat) for name, value in body.items()}
            answer = post_opened(self.clients[who], place, typed)
        else:
            answer = self.clients[who].change(method, place, body, If_Match="*")
        refused = answer.headers.get("Content-Type", "").endswith("problem+json")
        why = f"{answer.json()['code']}: {answer.json().get('detail', '')}" if refused else ""
        return f" → {answer.status_code} {why or answer.headers.get('Location', '')}".rstrip()


def _entry(entry: AuditEntry) -> str:
    where = entry.chain.partition(":")[0]
    head = f"{entry.actor} ({entry.actor_kind}) {entry.action} {entry.object_type} {entry.object_label} in {where}"
    said = {"before": entry.before, "after": entry.after, "reason": entry.reason}
    return f"{head}\n{expected.pretty({key: value for key, value in said.items() if value})}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, django_db_setup, django_db_blocker):
    server = SimulatedServer(tmp_path_factory.mktemp("traces"))
    server.start()

    def build() -> ground_module.Ground:
        made = ground_module.build(mode="quota", api_url=server.url, simulated=True)
        clusters.set_connection(cluster=made.cluster, api_url=server.url, token=server.token, actor="tests")
        return made

    world, patches = expected.standing_world(build), pytest.MonkeyPatch.context()
    with django_db_blocker.unblock(), world as ground, patches as patch:
        found = _Recorder(patch, ground)
        for step in STEPS:
            found.step(**step)
        yield found
    server.stop()


@pytest.mark.parametrize("kind", ["manifests", "audit"])
def test_edits(recorded, kind):
    expected.check(f"edits/{kind}", "\n".join(getattr(recorded, kind)))
