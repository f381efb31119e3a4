"""Action ``shuffle``: send away what plugins want gone, so that it is placed anew elsewhere.

All running tasks are shown to extension point victim_tasks (plugins ``tdm``, ``rescheduling``); what the first tier
that names any names is evicted at once: no statement, no place in return. Source: volcano-semantics 3.7.

On purpose different from upstream: system pods, protected pods and protected PodGroups stay, disruption budgets hold,
and where tide rules hold or losing a member ends the job, the gang is evicted whole; its surplus may go alone
where no other member is harmed (contracts 3.2). With ``compatibility: volcano`` exactly the named tasks go."""

from typing import ClassVar

import numpy as np

from scheduler_core.actions.support.attempt import cards_of, total
from scheduler_core.actions.support.guards import Guards
from scheduler_core.framework.disruption_budgets import DisruptionBudgets
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Eviction, Reclaim, ReclaimVictimGang, VictimRole
from scheduler_core.model.resources import Amount
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import RUNNING


class Shuffle(Action):
    name: ClassVar[str] = "shuffle"

    def execute(self, session: Session) -> None:
        """One look at all running tasks; O(tasks)."""
        tasks = session.tasks
        running = np.flatnonzero(tasks.live & (tasks.status == RUNNING) & (tasks.gang >= 0)).tolist()
        running.sort(key=tasks.keys.__getitem__)
        named = session.hooks.named("victim_tasks", running)
        by_gang: dict[int, list[int]] = {}
        for task in sorted(named, key=tasks.keys.__getitem__):
            by_gang.setdefault(int(tasks.gang[task]), []).append(task)
        guards, budgets = Guards(session), DisruptionBudgets(session)
        for gang, wanted in sorted(by_gang.items()):
            leaving = () if guards.rule(gang) else _who_falls(session, guards, gang, wanted)
            if not session.compat and (kept := budgets.violations(leaving)):
                # Where gangs are evicted whole, all members of a gang leave or none.
                leaving = tuple(task for task in leaving if task not in kept) if set(leaving) <= set(wanted) else ()
            if leaving:
                _evict(session, guards, gang, leaving, named)


def _who_falls(session: Session, guards: Guards, gang: int, wanted: list[int]) -> tuple[int, ...]:
    """The named tasks, with their siblings where gangs are evicted whole; none where it may not be."""
    holding = guards.holding(gang)
    free = tuple(task for task in wanted if not session.tasks.protected[task])
    whole = session.gangs_fall_whole or session.group(gang).evicted_policy.fells_gang
    if session.compat or not whole:
        return free
    if len(free) <= holding.spare and set(free) <= set(holding.singles):
        return free
    return holding.members if holding.whole else ()


def _evict(
    session: Session, guards: Guards, gang: int, leaving: tuple[int, ...], named: dict[int, tuple[str, str]]
) -> None:
    """Evict and write down; one record a gang, since no gang is evicted for another one here."""
    tasks, name = session.tasks, session.gangs.names[gang]
    session.trace.fallen.add(gang)
    plugin, why = next(named[task] for task in leaving if task in named)
    for task in leaving:
        session.trace.evictions.append(
            Eviction(
                pod=tasks.keys[task], node=tasks.pod(task).node, gang=name, reclaimer="", action=Shuffle.name,
                role=VictimRole.VICTIM if task in named else VictimRole.SIBLING,
                reason=f"plugin {plugin}: {named.get(task, (plugin, why))[1]}",
            )
        )  # fmt: skip
    session.trace.reclaims.append(
        Reclaim(
            reclaimer="",
            queue="",
            action=Shuffle.name,
            needed=Amount(),
            freed=total(session, list(leaving)),
            victims=(
                ReclaimVictimGang(
                    gang=name,
                    queue=session.group(gang).queue,
                    pods=tuple(tasks.keys[task] for task in leaving),
                    cards=cards_of(session, leaving),
                    work_lost_card_seconds=round(sum(map(guards.work_lost, leaving)) / 1_000_000, 3),
                ),
            ),
            rule=Rule.SENT_AWAY.text(plugin=plugin, why=why),
        )
    )
    statement = session.statement()
    for task in leaving:
        statement.evict(task)
    session.commit(statement)
