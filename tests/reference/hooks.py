"""What the plugins of a policy say together, in plain loops over tiers (semantics 1.4, with the better rule of 1.5).

A naive plugin is a class in ``tests/reference/plugins/<name>.py`` with a method for each point it cares about; every
method gets the world first. Points and their answers:

- order, a tuple of sort keys: ``queue_order(world, queue)``, ``gang_order(world, gang)``, ``task_order(world, task)``
- vote, 1 permit, 0 abstain, -1 reject: ``enqueueable(world, gang)``, ``pipelined(world, gang)``
- all must say True: ``valid``, ``ready`` (world, gang), ``allowed(world, task, card)``, ``filter(world, task, node)``
  (once what leaves has left), ``filter_now`` (what stands in the way until then),
  ``reclaimer(world, gang)``, ``well_written(world, gang)``, ``preemptive(world, task, card)``
- one True is enough: ``overused(world, queue)``, ``holds_partly(world, gang)``
- only the first tier with a registrant: ``starving(world, gang)``
- added: ``score(world, task, node)``
- of one task where it is placed, beyond what filters and scores say: ``task_filter``, ``task_score``
- the first registrant with a wish that has room: ``card_choice(world, task, card, node)``
- the per-pod cycle: ``queue_sort(world, task)`` sort keys; ``pre_filter(world, task)`` None, or why not (``"late"``:
  its group is); ``permit(world, task)`` ``"ok"``, ``"late"`` or until when to wait; ``post_filter`` = pods may preempt
- sent away, task key -> anything, all of the first tier that names anybody: ``victim_tasks(world, tasks)``
- whom nodes are kept for: ``target(world, gangs)``, ``keep(world, gang, nodes)``
- victims, a set of task keys or None to abstain: ``reclaimable``, ``preemptable``, ``unified_evictable`` (world, task,
  candidates)
- the first registrant's answer: ``service_type(world, gang)``, ``charge(world, cpu, memory, with_cards)``,
  ``quota_left(world, gang)``
"""

from __future__ import annotations

from tests.reference.budgets import spared

# point -> the switch of the policy file that turns it off, by the engine's name of the switch
SWITCH = {
    "queue_order": "queue_order",
    "gang_order": "job_order",
    "task_order": "task_order",
    "enqueueable": "job_enqueued",
    "enqueued": "job_enqueued",
    "pipelined": "job_pipelined",
    "ready": "job_ready",
    "starving": "job_starving",
    "allowed": "allocatable",
    "preemptive": "preemptive",
    "filter": "predicate",
    "filter_now": "predicate",
    "score": "node_order",
    "task_filter": "predicate",
    "task_score": "node_order",
    "card_choice": "node_order",
    "victim_tasks": "victim",
    "target": "target_job",
    "keep": "reserved_nodes",
    "overused": "overused",
    "holds_partly": "job_pipelined",
    "reclaimer": "reclaimable",
    "reclaimable": "reclaimable",
    "preemptable": "preemptable",
}


class Hooks:
    """Plugins by tier: ``tiers`` is a list of lists of (plugin, switches)."""

    def __init__(self, tiers):
        self.tiers = tiers

    def rows(self, point):
        """Methods by tier, empty tiers included."""
        switch = SWITCH.get(point)
        return [
            [
                getattr(plugin, point)
                for plugin, switches in tier
                if hasattr(plugin, point) and (switch is None or switches.get(switch, True))
            ]
            for tier in self.tiers
        ]

    def flat(self, point):
        """Methods of all tiers in order."""
        return [call for row in self.rows(point) for call in row]

    def key(self, point, *subject):
        """Sort keys one after the other."""
        return tuple(part for call in self.flat(point) for part in call(*subject))

    def vote(self, point, *subject):
        """True unless somebody rejects before a tier with a permit has ended."""
        for row in self.rows(point):
            permitted = False
            for call in row:
                answer = call(*subject)
                if answer < 0:
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    def rejecter(self, point, *subject):
        """The plugin whose reject ends the vote, or None."""
        for row in self.rows(point):
            permitted = False
            for call in row:
                answer = call(*subject)
                if answer < 0:
                    return call.__self__
                permitted = permitted or answer > 0
            if permitted:
                return None
        return None

    def all(self, point, *subject):
        """True when nobody says no."""
        return all(call(*subject) for call in self.flat(point))

    def any(self, point, *subject):
        """True when somebody says yes."""
        return any(call(*subject) for call in self.flat(point))

    def first_tier_all(self, point, *subject):
        """The first tier with a registrant decides; False without any."""
        for row in self.rows(point):
            if row:
                return all(call(*subject) for call in row)
        return False

    def total(self, point, *subject):
        """The sum of all answers."""
        total = 0
        for call in self.flat(point):
            total = total + call(*subject)
        return total

    def first(self, point, *subject):
        """The first registrant's answer, None without any."""
        for call in self.flat(point):
            return call(*subject)
        return None

    def named(self, point, *subject):
        """Everybody whom the first tier that names anybody names."""
        for row in self.rows(point):
            found = set().union(*(call(*subject) for call in row))
            if found:
                return found
        return set()

    def victims(self, point, world, task, candidates):
        """Keys of the tasks that may be taken: the first tier that decides, all of it, and guards of every tier below.

        An empty answer is a veto. Nobody goes whom a disruption budget protects.
        """
        standing = None
        for row in self.rows(point):
            decided = standing is not None
            for call in row:
                if decided and point not in getattr(call.__self__, "guards", ()):
                    continue
                answer = call(world, task, candidates)
                if answer is None:
                    continue
                standing = set(answer) if standing is None else standing & set(answer)
                if not standing:
                    return set()
        if standing and not any(plugin.__class__.__name__ == "Pdb" for tier in self.tiers for plugin, _ in tier):
            # Budgets hold without the plugin too; only those who might leave use them up.
            standing -= spared(world, [other for other in candidates if other["key"] in standing])
        return standing or set()
