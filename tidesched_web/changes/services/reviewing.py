"""Call it outside of transactions: the impact is waited for."""

from typing import Any

from tidesched_web.changes.impact import ask
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.server_check import server_check
from tidesched_web.changes.services.drafting import plan
from tidesched_web.changes.services.known_plan import known_impact, subject_of
from tidesched_web.common.permissions import Access


def ask_impact(*, change: QuotaChange, access: Access, just_planned: bool = False) -> None:
    """``just_planned``: the change was drafted in this very request, so the plan that it has is that of now."""
    document = change.plan or {} if just_planned else plan(change=change, access=access)
    if change.state in QuotaChange.OPEN and document.get("objects") and not document.get("errors"):
        ask(change.cluster, document["objects"], access=access, subject=subject_of(change))


def shown_plan(*, change: QuotaChange, access: Access, impact: bool = False, server: bool = False) -> dict[str, Any]:
    """``impact``: wait a little for one that is being worked out. ``server``: ask the cluster too, by a dry run."""
    document = plan(change=change, access=access)
    whole = known_impact(change, document, wait=impact) if impact or (change.plan or {}).get("impact") else None
    errors = document.get("errors", [])
    asks = server and change.state in QuotaChange.OPEN and not errors
    answer = server_check(change.cluster, document.get("objects") or []) if asks else None
    found = None if whole is None else within_sight(whole, access, change.cluster_id)
    return document | {"impact": found, "server": answer}
