"""The frame of every quota write: lock the tree, write, check the sum rules as they come out, count the version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Sum

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row
from tidesched_web.quota.models import Queue, QuotaTree
from tidesched_web.quota.services.tide_plans import check_moments
from tidesched_web.quota.tide_selectors import plan_documents
from tidesched_web.quota.tree_rules import CPU, MEMORY, ROOT, Breach, Tree, worsened
from tidesched_web.quota.tree_selectors import quota_tree
from tidesched_web.quota.tree_words import excess_text

_FIELD_OF = {CPU: "cpu_milli", MEMORY: "memory_bytes"}


@dataclass
class QuotaWrite:
    """A write under way; one that finds nothing to do says ``changed = False``."""

    changed: bool = True


@contextmanager
def quota_write(cluster: Cluster) -> Iterator[QuotaWrite]:
    """One write of a cluster's quota, all or nothing; the caller's transaction also holds its audit entry.

    The row lock makes writers of one tree follow each other; without it two edits that only fit one at a time would
    both pass. Raises `DomainError` ``quota_breach`` where the write creates or enlarges a breach.
    """
    with transaction.atomic():
        QuotaTree.objects.get_or_create(cluster=cluster)
        tree_row = lock_row(QuotaTree, cluster.pk)
        before = quota_tree(cluster)
        write = QuotaWrite()
        yield write
        if not write.changed:
            return
        after = quota_tree(cluster)
        worse = worsened(before, after)
        if worse:
            raise _refusal(cluster, before, after, worse)
        plans = plan_documents(cluster)
        if plans:
            check_moments(cluster, before, after, plans, plans)
        tree_row.version += 1
        tree_row.save(update_fields=["version"])


def pointer_of(resource: str) -> str:
    """JSON pointer of a figure in a queue, project or tenant document."""
    if resource in _FIELD_OF:
        return f"/{_FIELD_OF[resource]}"
    return "/card_quota/" + resource.replace("~", "~0").replace("/", "~1")


def _refusal(cluster: Cluster, before: Tree, after: Tree, worse: list[Breach]) -> DomainError:
    changed = {key for key, holder in after.holders.items() if before.holders.get(key) != holder}
    errors = [_one(cluster, after, breach, changed) for breach in worse]
    return DomainError("quota_breach", errors[0]["detail"], {"errors": errors})


def _one(cluster: Cluster, tree: Tree, breach: Breach, changed: set[str]) -> dict[str, Any]:
    holder = tree.holders.get(breach.holder)
    if holder is None:
        code, whose = "exceeds_hardware", ""
    elif breach.holder in changed:
        code, whose = "below_children", holder.title
    else:
        code, whose = f"exceeds_{holder.kind}", holder.title
    siblings = {
        key: other for key, other in tree.holders.items() if other.parent == breach.holder and key not in changed
    }
    sibling = siblings.get(breach.largest_child) or next(iter(siblings.values()), None)
    return {
        "pointer": pointer_of(breach.resource),
        "code": code,
        "detail": excess_text(breach, whose),
        "service_type": breach.service_type,
        "resource": breach.resource,
        "requested": breach.requested,
        "limit": breach.limit,
        "in_use": _in_use(cluster, breach),
        "sibling": sibling.name if sibling else None,
    }


def _in_use(cluster: Cluster, breach: Breach) -> float | None:
    """Cards in use now below the holder; unknown (None) for cpu and memory."""
    if breach.resource in _FIELD_OF:
        return None
    queues = Queue.objects.filter(cluster=cluster, service_type=breach.service_type, usage__card=breach.resource)
    if breach.holder != ROOT:
        kind, _, pk = breach.holder.partition(":")
        queues = queues.filter(**{f"{kind}_id": int(pk)})
    milli = queues.aggregate(total=Sum("usage__allocated"))["total"] or 0
    return float(milli) / 1000
