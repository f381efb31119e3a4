"""Make and carry out changes of intent. A change is the only way to write the tree of a cluster."""

from tidesched_web.changes.services.applying import apply, apply_due, carry_out
from tidesched_web.changes.services.carrying import carry
from tidesched_web.changes.services.deciding import approve, cancel, reject, retry, roll_back, undoing
from tidesched_web.changes.services.drafting import draft, edit_draft, plan
from tidesched_web.changes.services.planning import check
from tidesched_web.changes.services.reviewing import shown_plan
from tidesched_web.changes.services.sweeping import prune, sweep

__all__ = [
    "apply",
    "apply_due",
    "approve",
    "cancel",
    "carry",
    "carry_out",
    "check",
    "draft",
    "edit_draft",
    "plan",
    "prune",
    "reject",
    "retry",
    "roll_back",
    "shown_plan",
    "sweep",
    "undoing",
]
