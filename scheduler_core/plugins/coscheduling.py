"""Plugin ``coscheduling``: the pods of a group are tried one by one and bound when enough of them have a place.

Extension points: queue_sort, pre_filter, permit, job_problem.
Units: seconds. A pod whose group is not complete keeps its place and waits. The clock of a group with a time limit
(annotation ``tidesched.io/schedule-timeout-seconds`` of its PodGroup) runs from the creation of the PodGroup; when it
is over, all that wait are let go, others get their places in the same session, and the group is not tried again. A
member for which a victim still has to leave a node does not count yet; once the room is free it needs permission like
the others.
Source: document 001, 4.2. On purpose: minimums by role (minTaskMember) are kept too, which the document leaves for
later: within a group they come first, role by role. Without a time limit a place is kept for ``waitSeconds`` at a time
and the pods back off after that, so that two groups cannot hold each other up for ever."""

from typing import Any, ClassVar

import numpy as np

from scheduler_core.framework.plugin import Argument, Plugin
from scheduler_core.framework.pod_points import APPROVE, Deny, Permit, Wait
from scheduler_core.framework.session import Session
from scheduler_core.state.status import PENDING, PIPELINED, READY, VALID

SCHEDULE_TIMEOUT = "tidesched.io/schedule-timeout-seconds"


class Coscheduling(Plugin):
    name: ClassVar[str] = "coscheduling"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            name="waitSeconds", type="float", default=60.0, minimum=1.0, maximum=86400.0,
            aliases=("permitWaitingTimeSeconds",),
            doc="how long a pod keeps its place while its group, which has no time limit, is not complete",
        ),
    )  # fmt: skip

    def open(self, session: Session) -> None:
        super().open(session)
        self._by_age: dict[int, tuple[Any, Any]] = {}

    def queue_sort(self, task: int) -> tuple[Any, ...]:
        """Groups stay together: priority of the pods, then of the group, creation of the group, its name; within a
        group what its roles need comes before what they have more."""
        tasks = self.session.tasks
        group = self.session.group(int(tasks.gang[task]))
        return (-int(tasks.priority[task]), -group.priority, group.created, group.key, self._more(task))

    def _more(self, task: int) -> bool:
        """Whether others of its role, in their order, are enough for the role's minimum."""
        session, role = self.session, self.session.tasks.pod(task).role
        gang = int(session.tasks.gang[task])
        wanted = session.group(gang).min_task_member.get(role, 0)
        if not session.group(gang).min_task_member:
            return False
        if gang not in self._by_age:
            members = sorted(session.gangs.members(gang), key=lambda other: _age(session, other))
            roles = [session.tasks.pod(other).role for other in members]
            self._by_age[gang] = np.array(members), np.array(roles, dtype=object)
        members, roles = self._by_age[gang]
        mates = members[roles == role]
        status = session.tasks.status[mates]
        placed = np.count_nonzero(READY[status] | (status == PIPELINED))
        older = status[: int(np.flatnonzero(mates == task)[0])]
        return bool(placed + np.count_nonzero(older == PENDING) >= wanted)

    def job_problem(self, gang: int) -> str | None:
        """Members of different priorities, or a time limit that is no number."""
        session = self.session
        priorities = {int(session.tasks.priority[task]) for task in session.gangs.members(gang)}
        if len(priorities) > 1:
            return f"members have priorities {min(priorities)} and {max(priorities)}; those of one group share one"
        text = session.group(gang).annotations.get(SCHEDULE_TIMEOUT)
        if text is not None and _seconds(text) is None:
            return f"{SCHEDULE_TIMEOUT} is {text!r}, not a number of seconds above 0"
        return None

    def pre_filter(self, task: int) -> str | Deny | None:
        """A group that timed out or cannot become complete is not tried."""
        session, gang = self.session, int(self.session.tasks.gang[task])
        if self._complete(gang, with_one_more=True):
            return None
        if self._timed_out(gang):
            return Deny(self._too_late(gang), timed_out=True)
        if session.gangs.valid(gang) < session.group(gang).min_member or not self._roles(gang, VALID):
            return "the group has fewer pods than it needs"
        return None

    def permit(self, task: int, node: int) -> Permit:
        """Scheduled, waiting and this one: enough, too late, or wait."""
        gang = int(self.session.tasks.gang[task])
        if self._complete(gang):
            return APPROVE
        if self._timed_out(gang):
            return Deny(self._too_late(gang), timed_out=True)
        deadline = self._deadline(gang)
        until = self.session.now + float(self.values["waitSeconds"]) if deadline is None else deadline
        return Wait(until, "the group is not complete")

    def _complete(self, gang: int, *, with_one_more: bool = False) -> bool:
        waiting = self._waiting(gang)
        have = self.session.gangs.ready(gang) + len(waiting) + with_one_more
        if with_one_more:
            return have >= self.session.group(gang).min_member
        return have >= self.session.group(gang).min_member and self._roles(gang, READY, waiting)

    def _waiting(self, gang: int) -> frozenset[int]:
        """Members that keep a place and wait for the others; not those whose place is still to be left."""
        session = self.session
        promised = session.gangs.with_status(gang, PIPELINED) if session.gangs.count(gang, PIPELINED) else []
        kept = session.reservations
        return frozenset(
            task for task in promised if not ((room := kept.get(session.tasks.keys[task])) and room.victims)
        )

    def _roles(self, gang: int, statuses: Any, waiting: frozenset[int] = frozenset()) -> bool:
        """Each role has as many members in one of the statuses, or waiting, as it needs."""
        session = self.session
        for role, wanted in session.group(gang).min_task_member.items():
            have = 0
            for task in session.gangs.members(gang):
                there = statuses[session.tasks.status[task]] or task in waiting
                have += bool(there and session.tasks.pod(task).role == role)
            if have < wanted:
                return False
        return True

    def _deadline(self, gang: int) -> float | None:
        group = self.session.group(gang)
        seconds = _seconds(group.annotations.get(SCHEDULE_TIMEOUT, ""))
        return None if seconds is None else group.created + seconds

    def _timed_out(self, gang: int) -> bool:
        deadline = self._deadline(gang)
        return deadline is not None and self.session.now >= deadline and self.session.gangs.count(gang, PENDING) > 0

    def _too_late(self, gang: int) -> str:
        group = self.session.group(gang)
        have = self.session.gangs.ready(gang)
        limit = _seconds(group.annotations.get(SCHEDULE_TIMEOUT, "")) or 0.0
        return f"{have} of {group.min_member} members had a place {limit:g} s after the group was made"


def _age(session: Session, task: int) -> tuple[float, str]:
    pod = session.tasks.pod(task)
    return pod.created, pod.key


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None
