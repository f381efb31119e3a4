from collections.abc import Collection, Mapping
from typing import Any

from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.workloads.sight import reason_within_sight

Row = dict[str, Any]

_GAINS = {"gangs_run": ("running", "larger"), "gangs_promised": ("promised",), "gangs_admitted": ("admitted",)}
_GANGS = (*_GAINS, "gangs_lose", "differ")
_VICTIMS = ("reclaimed_next", "spared_next", "reclaimed_at_flood", "spared_at_flood")


def within_sight(impact: Mapping[str, Any], access: Access, cluster_id: int) -> Row:
    impact = as_now(impact)
    if access.everything:
        return {**impact, "hidden": {}}
    queues = set(visible_queues(access).filter(cluster_id=cluster_id).values_list("name", flat=True))
    shown: Row = {**impact, "hidden": {}}
    for name in (*_GANGS, *_VICTIMS, "queues_over"):
        rows = impact.get(name)
        if rows is None:
            continue
        kept = [seen for row in rows if (seen := _row(name, row, queues)) is not None]
        shown[name] = kept
        hidden = impact.get("counts", {}).get(name, len(rows)) - len(kept)
        if hidden > 0:
            # Of a list that was cut it is not known whose the rest is: it counts as other tenants'.
            shown["hidden"][name] = hidden
    if impact.get("tenants"):
        shown["tenants"] = [row for row in impact["tenants"] if row["tenant"] in access.tenant_ids]
    if impact.get("flood"):
        shown["flood"] = {when: _flood(told, queues) for when, told in impact["flood"].items()}
    if impact.get("card_hours"):
        shown["card_hours"] = {card: _own(hours, queues) for card, hours in impact["card_hours"].items()}
    return shown


def as_now(impact: Mapping[str, Any]) -> Mapping[str, Any]:
    """An impact that was kept in the first version: there all that gangs gain was one list, which counted as one."""
    rows = impact.get("gangs_start")
    if rows is None:
        return impact
    lists = {name: [row for row in rows if row.get("becomes") in words] for name, words in _GAINS.items()}
    counts = {name: count for name, count in impact.get("counts", {}).items() if name != "gangs_start"}
    rest = {name: value for name, value in impact.items() if name != "gangs_start"}
    return {**rest, **lists, "counts": {**counts, **{name: len(found) for name, found in lists.items()}}}


def _row(name: str, row: Row, queues: Collection[str]) -> Row | None:
    own = row["queue"] in queues
    if name in _VICTIMS:
        if own:
            # Whose cards are taken may know by whom, not of what queue.
            return row if row["reclaimer_queue"] in queues else {**row, "reclaimer_queue": None}
        if row["reclaimer_queue"] in queues:
            hidden = ("queue", "cards", "pods", "work_lost_card_seconds")
            return {name: value for name, value in row.items() if name != "last_restart"} | dict.fromkeys(hidden)
        return None
    if not own:
        return None
    for key in ("reason", "reason_before"):
        if row.get(key):
            numbers, message = reason_within_sight(row[key]["numbers"], row[key]["message"], queues)
            row = {**row, key: {**row[key], "numbers": numbers, "message": message}}
    return row


def _flood(told: Row, queues: Collection[str]) -> Row:
    """Its sums are of the whole cluster; what is claimed and not served is said of the reader's queues."""
    return {**told, "claims": _own(told["claims"], queues), "unserved": _own(told["unserved"], queues)}


def _own(by_queue: Mapping[str, Any], queues: Collection[str]) -> Row:
    return {name: value for name, value in by_queue.items() if name in queues}


def result_within_sight(job: Job, access: Access) -> Row | None:
    if job.result is None or job.kind not in (JobKind.IMPACT, JobKind.IMPACT_DAY) or job.cluster_id is None:
        return job.result
    return within_sight(job.result, access, job.cluster_id)
