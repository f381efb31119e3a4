"""What a change of tide plans makes of the quotas at each step of the plans in the next day."""

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from tidesched_web.changes.impact import ask
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.object_differences import object_differences
from tidesched_web.changes.services.known_plan import subject_of
from tidesched_web.changes.services.planning import plan_of
from tidesched_web.changes.tree_document import Documents, key_of, kind_of, parts_of
from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.jobs.selectors import newest_since
from tidesched_web.quota import tide
from tidesched_web.quota.push_selectors import limited_cards

DAY: Final = dt.timedelta(days=1)
# So many steps are looked at for those that the change makes another one.
MOST_STEPS: Final = 48


@dataclass(frozen=True)
class StepAhead:
    """``without``, ``with_it``: by the plans alone. ``differences``: the queues now, and with that quota."""

    at: dt.datetime
    without: tide.Quota
    with_it: tide.Quota
    differences: list[dict[str, Any]]


def steps_ahead(change: QuotaChange, reader: Access) -> list[StepAhead]:
    """Those at which a quota differs with the change; where the next day has none, the first one after it."""
    plan = plan_of(change, reader)
    before, after = (_enabled(documents) for documents in (plan.before, plan.after))
    if plan.faults or before == after:
        return []
    cluster, turned = change.cluster, tide.touched([*before, *after])
    now, limited = cluster.clock(), limited_cards(cluster)
    at = now
    found: list[StepAhead] = []
    for _step in range(MOST_STEPS):
        following = tide.next_change([*before, *after], at)
        if following is None or (found and following > now + DAY):
            break
        at = following
        without, with_it = _quota(plan.before, before, turned, at), _quota(plan.after, after, turned, at)
        if without != with_it:
            uses, hardware = plan.around.in_use, plan.around.hardware
            objects = object_differences(
                plan.before, plan.after, plan.edits, now, limited, in_use=uses, hardware=hardware, then=at
            )
            found.append(StepAhead(at, without, with_it, [one.as_json() for one in objects]))
    return found


def _enabled(documents: Documents) -> list[tide.Plan]:
    return tide.enabled_plans({parts_of(key)[0]: one for key, one in documents.items() if kind_of(key) == "tide-plan"})


def _quota(documents: Documents, plans: list[tide.Plan], names: set[str], at: dt.datetime) -> tide.Quota:
    base = {name: documents[key]["card_quota"] for name in names if (key := key_of("queue", name)) in documents}
    return tide.with_layers(base, plans, tide.open_layers(plans, at))


def job_of(change: QuotaChange, step: StepAhead, access: Access, *, since: dt.datetime, asks: bool) -> Job | None:
    """The newest question of this step, unless it was put before ``since``: then it is put anew where this one asks."""
    subject = f"{subject_of(change)}.{change.revision}@{step.at:%Y%m%dT%H%M%SZ}"
    known = newest_since(JobKind.IMPACT, subject, since)
    return known or (ask(change.cluster, step.differences, access=access, subject=subject) if asks else None)
