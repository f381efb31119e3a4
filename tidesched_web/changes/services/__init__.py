"""A change is the only way to write the tree of a cluster."""

from tidesched_web.changes.services.applying import apply, apply_due, carry_out
from tidesched_web.changes.services.deciding import approve, cancel, note_seen, reject, retry, roll_back, undoing
from tidesched_web.changes.services.drafting import draft, edit_draft, plan
from tidesched_web.changes.services.known_plan import subject_of
from tidesched_web.changes.services.owner_removal import refuse_queues, remove_project
from tidesched_web.changes.services.planning import check
from tidesched_web.changes.services.reviewed import Reviewed, edited_since, require_reviewed, require_versions
from tidesched_web.changes.services.reviewing import ask_impact, has_aged, shown_plan
from tidesched_web.changes.services.sweeping import prune, sweep
from tidesched_web.changes.services.whole_tree import check_tree, set_tree

__all__ = [
    "Reviewed",
    "apply",
    "apply_due",
    "approve",
    "ask_impact",
    "cancel",
    "carry_out",
    "check",
    "check_tree",
    "draft",
    "edit_draft",
    "edited_since",
    "has_aged",
    "note_seen",
    "plan",
    "prune",
    "refuse_queues",
    "reject",
    "remove_project",
    "require_reviewed",
    "require_versions",
    "retry",
    "roll_back",
    "set_tree",
    "shown_plan",
    "subject_of",
    "sweep",
    "undoing",
]
