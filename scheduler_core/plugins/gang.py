"""Plugin ``gang``: a gang runs with at least minMember tasks or not at all.

Extension points: job_valid, job_order, job_ready, job_pipelined, job_starving, preemptable, reclaimable,
unified_evictable.
Source: volcano-semantics 2.2 and 4.1. On purpose: where tide rules hold, gangs leave whole and this plugin has no say
in who may be taken (contracts 3.2); starving is counted in replicas by the priority plugin, and here as "has a task
that waits", so that a service with minMember 1 takes back for all its replicas (pitfall 2). With
``compatibility: volcano`` gangs are not evicted whole, and starving ends at minMember."""

from collections.abc import Sequence
from typing import ClassVar

from scheduler_core.framework.combine import Ballot, Opinion
from scheduler_core.framework.forms import Form, Members, ReadyKey, Suspects
from scheduler_core.framework.gang_votes import GangOpinion
from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import READY, VALID, Bools, TaskStatus


class Gang(Plugin):
    name: ClassVar[str] = "gang"
    keeps_minimum: ClassVar[bool] = True

    def job_valid(self, gang: int) -> str | None:
        """Enough members exist, in all and of each role."""
        gangs = self.session.gangs
        least = gangs.least[gang]
        valid = gangs.valid(gang)
        if valid < least:
            return f"{valid} of at least {least} members exist"
        for role, wanted in self._roles(gang).items():
            have = self._role_count(gang, role, VALID)
            if have < wanted:
                return f"{have} of at least {wanted} members of role {role} exist"
        return None

    def job_order(self, gang: int) -> tuple[bool]:
        """Gangs that cannot run yet go first."""
        return (self.job_ready(gang),)

    def job_ready(self, gang: int) -> bool:
        """Enough members are in place; those that ask for nothing count as placed."""
        gangs = self.session.gangs
        ready = gangs.ready(gang)
        least = gangs.least[gang]
        if ready < least and ready + self._best_effort(gang) < least:
            return False
        return all(self._role_count(gang, role, READY) >= wanted for role, wanted in self._roles(gang).items())

    def job_pipelined(self, gang: int) -> Ballot:
        """Permit when the gang could run once what leaves has left."""
        gangs = self.session.gangs
        if gangs.ready(gang) + gangs.waiting(gang) + self._best_effort(gang) < gangs.least[gang]:
            return Ballot.REJECT
        for role, wanted in self._roles(gang).items():
            promised = self._role_count(gang, role, READY, TaskStatus.PIPELINED)
            if promised < wanted:
                return Ballot.REJECT
        return Ballot.PERMIT

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Gangs with minima of roles are looked at one by one."""
        gangs, roles = self.session.gangs, self.session.cluster.workspace.facts.roles
        if point == "job_valid":
            return [Suspects(roles | (gangs.valid_count < gangs.min_member))]
        if point == "job_order":
            return [ReadyKey(self.job_ready)]
        if point in ("job_ready", "job_pipelined"):
            return [Members(roles)]
        return None

    def job_starving(self, gang: int) -> bool:
        """A member waits and has no promise; upstream: minMember is not reached, promises counted."""
        gangs = self.session.gangs
        if self.session.compat:
            return gangs.ready(gang) + gangs.waiting(gang) < gangs.least[gang]
        return gangs.pending(gang) > 0

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """Members above minMember, in the order given; no say where gangs are evicted whole."""
        if self.session.gangs_fall_whole:
            return Opinion(None)
        return self._surplus(candidates)

    def reclaimable_gangs(self, reclaimer: int, candidates: Bools) -> GangOpinion | None:
        """No say where gangs are evicted whole; elsewhere None, since each member counts."""
        return GangOpinion(None) if self.session.gangs_fall_whole else None

    def unified_evictable(self, taker: int, candidates: Sequence[int]) -> Opinion:
        """No say: the gang actions count minMember themselves. Upstream allows all, which shuts out lower tiers."""
        return Opinion(frozenset(candidates)) if self.session.compat else Opinion(None)

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> Opinion:
        """As for a reclaim."""
        return self.reclaimable(preemptor, candidates)

    def _surplus(self, candidates: Sequence[int]) -> Opinion:
        gangs, left = self.session.gangs, dict[int, int]()
        allowed, refused = [], {}
        for task in candidates:
            gang = int(self.session.tasks.gang[task])
            ready = left.get(gang, gangs.ready(gang))
            if ready > gangs.least[gang]:
                left[gang] = ready - 1
                allowed.append(task)
            else:
                refused[task] = Rule.BELOW_MINIMUM.text()
        return Opinion(frozenset(allowed), refused)

    def _roles(self, gang: int) -> dict[str, int]:
        """Minimum per role; it counts only where minMember covers the sum (semantics 2.2)."""
        group = self.session.group(gang)
        roles = group.min_task_member
        if not roles or group.min_member < sum(roles.values()):
            return {}
        return roles

    def _role_count(self, gang: int, role: str, statuses: Bools, also: TaskStatus | None = None) -> int:
        """Members of a role in one of the statuses, waiting ones that ask for nothing included."""
        tasks = self.session.tasks
        count = 0
        for task in self.session.gangs.members(gang):
            status = tasks.status[task]
            if tasks.pod(task).role == role and (statuses[status] or status == also or self._asks_nothing(task)):
                count += 1
        return count

    def _best_effort(self, gang: int) -> int:
        """Waiting members that ask for nothing but a place."""
        gangs = self.session.gangs
        if not gangs.has_best_effort[gang] or not gangs.pending(gang):
            return 0
        return sum(1 for task in gangs.with_status(gang, TaskStatus.PENDING) if self._asks_nothing(task))

    def _asks_nothing(self, task: int) -> bool:
        status = self.session.tasks.status[task]
        return bool(status == TaskStatus.PENDING and self.session.cluster.class_of(task).best_effort)
