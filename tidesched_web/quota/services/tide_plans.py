"""Tide plans: written like any other quota intent, and checked at every moment that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F

from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row
from tidesched_web.quota import tide_document, tide_rules
from tidesched_web.quota.models import Queue, QuotaTree, TidePlan
from tidesched_web.quota.services.recording import record
from tidesched_web.quota.tide_rules import MomentBreach
from tidesched_web.quota.tide_selectors import document_of, plan_documents
from tidesched_web.quota.tree_rules import Tree
from tidesched_web.quota.tree_selectors import quota_tree


@transaction.atomic
def write_tide_plan(
    *,
    cluster: Cluster,
    name: str,
    document: Mapping[str, Any] | None,
    actor: str,
    reason: str = "",
    version: int | None = None,
) -> TidePlan | None:
    """Make the plan of this name say ``document`` (None: there is none). Nothing is written where it says so already.

    Raises `DomainError`: ``stale`` where it is of another version, ``invalid`` for a document that is none,
    ``quota_breach`` where the sum rules would not hold at some moment.
    """
    QuotaTree.objects.get_or_create(cluster=cluster)
    tree_row = lock_row(QuotaTree, cluster.pk)
    plan = TidePlan.objects.filter(cluster=cluster, name=name).first()
    if version is not None and version != (plan.version if plan else 0):
        raise DomainError(
            "stale", f"Tide plan {name} was changed meanwhile.", {"etag": f'"{plan.version}"' if plan else None}
        )
    before = document_of(plan) if plan else None
    after = None if document is None else _checked(cluster, name, document)
    if before == after:
        return plan
    plans = plan_documents(cluster)
    then = {key: value for key, value in plans.items() if key != name} | ({name: after} if after else {})
    check_moments(cluster, quota_tree(cluster), quota_tree(cluster), plans, then)
    verb = "delete" if after is None else "create" if plan is None else "update"
    queues = {queue for each in (before, after) if each for layer in each["layers"] for queue in layer["quota"]}
    tenants = set(Queue.objects.filter(cluster=cluster, name__in=queues).values_list("tenant_id", flat=True))
    if after is None:
        assert plan is not None
        gone, plan.pk = plan.pk, plan.pk
        TidePlan.objects.filter(pk=gone).delete()
    elif plan is None:
        plan = TidePlan.objects.create(cluster=cluster, name=name, **after)
    else:
        TidePlan.objects.filter(pk=plan.pk).update(**after, version=F("version") + 1)
        plan.refresh_from_db()
    tree_row.version += 1
    tree_row.save(update_fields=["version"])
    record(
        plan,
        kind="tide_plan",
        verb=verb,
        actor=actor,
        label=name,
        cluster=cluster,
        tenant_ids=tenants,
        reason=reason,
        before=before,
        after=after,
    )
    return plan if after is not None else None


def _checked(cluster: Cluster, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    after, faults = tide_document.canonical(document)
    if not faults:
        queues = set(Queue.objects.filter(cluster=cluster).values_list("name", flat=True))
        cards = set(CardType.objects.filter(cluster=cluster).values_list("name", flat=True))
        faults = list(tide_document.unknown_names(after, queues, cards))
    if not name.strip() or len(name) > 120 or "/" in name or "\x00" in name:
        raise DomainError.for_field("/name", f"{name!r} is no name of a plan: at most 120 characters, no '/'.")
    if faults:
        errors = [{"pointer": fault.field, "code": fault.code, "detail": fault.detail} for fault in faults]
        raise DomainError("invalid", faults[0].detail, {"errors": errors})
    return after


def check_moments(
    cluster: Cluster, before: Tree, after: Tree, plans_before: tide_rules.Documents, plans_after: tide_rules.Documents
) -> None:
    """Refuse an edit of the base or of a plan after which a sum is exceeded at some moment of the year ahead."""
    found = tide_rules.first_breaches(before, after, plans_before, plans_after, now=cluster.clock())
    if found:
        errors = [moment_error(breach) for breach in found]
        raise DomainError("quota_breach", errors[0]["detail"], {"errors": errors})


def moment_error(found: MomentBreach) -> dict[str, Any]:
    return {
        "pointer": "/layers",
        "code": "exceeds_at_moment",
        "detail": found.sentence(),
        "plan": found.plan,
        "at": found.at.isoformat(),
        "service_type": found.breach.service_type,
        "resource": found.breach.resource,
        "requested": found.breach.requested,
        "limit": found.breach.limit,
        "in_use": None,
        "sibling": found.sibling,
    }
