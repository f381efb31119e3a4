"""The built-in actions: an explicit table by the name that a policy file uses."""

from scheduler_core.actions.allocate import Allocate
from scheduler_core.actions.backfill import Backfill
from scheduler_core.actions.elect import Elect
from scheduler_core.actions.enqueue import Enqueue
from scheduler_core.actions.gangpreempt import GangPreempt
from scheduler_core.actions.gangreclaim import GangReclaim
from scheduler_core.actions.preempt import Preempt
from scheduler_core.actions.reclaim import Reclaim
from scheduler_core.actions.reserve import Reserve
from scheduler_core.actions.shuffle import Shuffle
from scheduler_core.framework.plugin import Action

ACTIONS: dict[str, type[Action]] = {
    action.name: action
    for action in (Enqueue, Elect, Allocate, Reserve, Backfill, Preempt, GangPreempt, Reclaim, GangReclaim, Shuffle)
}
