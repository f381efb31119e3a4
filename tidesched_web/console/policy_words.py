from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.engine.policy_check import cooldown_seconds, outline

ACTIONS: Final[dict[str, Promise]] = {
    "enqueue": _("decides which gangs are admitted: those whose minimum fits the quota and what was promised"),
    "elect": _("chooses one gang that has waited long, for which nodes are kept"),
    "allocate": _("binds admitted gangs to what is free, each with its minimum or not at all"),
    "reserve": _("keeps the nodes of the elected gang free, or releases them"),
    "backfill": _("places pods that ask for nothing but a place"),
    "preempt": _("evicts by priority inside a queue"),
    "gangpreempt": _("evicts for a whole gang at once inside its queue: surplus first, then gangs"),
    "reclaim": _("evicts whole gangs of other queues for a gang that is entitled to more"),
    "gangreclaim": _("evicts for a whole gang at once from other queues: surplus first, then gangs"),
    "shuffle": _("evicts what plugins want placed elsewhere"),
}
PLUGINS: Final[dict[str, Promise]] = {
    "binpack": _("fills the nodes that are fullest first"),
    "capacity": _("gives each queue a ceiling, a deserved share and a guarantee"),
    "capacity-card": _("counts quota by card type, and lets inference reclaim from training"),
    "card-model": _("sends pods to the card models that they name, and keeps others off rare cards"),
    "cdp": _("spares a pod that has just been placed"),
    "conformance": _("never evicts what the cluster itself needs"),
    "coscheduling": _("binds the pods of a group once enough of them have a place"),
    "default-preemption": _("takes a node from pods of lower priority for a pod that finds none"),
    "deviceshare": _("counts single cards and shares of cards as Volcano's device plugins do"),
    "drf": _("lets the gang with the smaller dominant share go first"),
    "extender": _("asks a service of one's own by HTTP"),
    "fragmentation": _("chooses the node on which the least of what is left becomes useless"),
    "gang": _("runs a gang with its minimum or not at all"),
    "machine-group": _("keeps private machines for the pods of their group"),
    "nodegroup": _("says which groups of nodes the gangs of a queue may use"),
    "nodeorder": _("says which of the fitting nodes is best"),
    "numa-aware": _("gives pods CPUs of one NUMA cell where they ask for it"),
    "overcommit": _("admits no more than the cluster, a little enlarged, could hold"),
    "pdb": _("evicts no pod that a PodDisruptionBudget protects"),
    "predicates": _("says on which nodes a pod may be"),
    "priority": _("lets higher priority go first, of gangs and of pods"),
    "priority-sort": _("takes the pods of a profile one by one, higher priority first"),
    "proportion": _("divides the cluster between queues by weight"),
    "requested-to-capacity-ratio": _("rates nodes by how full they would be"),
    "rescheduling": _("moves pods away from nodes that are used much more than others"),
    "reservation": _("keeps nodes free for one gang that would otherwise starve"),
    "resourcequota": _("admits no gang whose pods the API server would refuse"),
    "sla": _("admits a gang that has waited as long as it may, and keeps room for it"),
    "task-topology": _("places pods of a gang together, or apart, as they ask"),
    "tdm": _("lends machines to revocable work at certain hours"),
    "usage": _("keeps off nodes that are loaded, whatever was requested there"),
}

# What ends without any of these; of other plugins, what they do is what ends.
WITHOUT: Final[dict[tuple[str, ...], Promise]] = {
    ("enqueue",): _("every gang counts as admitted at once"),
    ("elect",): _("no gang that has waited long is chosen for nodes to be kept any more"),
    ("allocate",): _("nothing that asks for cpu, memory or cards is bound any more"),
    ("reserve",): _("no nodes are kept free for a gang that has waited long any more"),
    ("backfill",): _("pods that ask for nothing but a place are not placed any more"),
    ("preempt", "gangpreempt"): _("nothing is evicted by priority inside a queue any more"),
    ("reclaim", "gangreclaim"): _("nothing is taken back between queues any more"),
    ("shuffle",): _("nothing is evicted any more because plugins want it placed elsewhere"),
    ("gang",): _("gangs are no longer started whole: single pods may start"),
}


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    does: Promise | str


@dataclass(frozen=True, slots=True)
class PolicyWords:
    actions: list[Named]
    tiers: list[list[Named]]
    profiles: list[str]
    reclaims: bool
    cool_down: float | None
    as_upstream: bool


def policy_words(text: str) -> PolicyWords | None:
    found = outline(text)
    if found is None:
        return None
    return PolicyWords(
        [Named(name, ACTIONS.get(name, "")) for name in found.actions],
        [[Named(name, PLUGINS.get(name, "")) for name in tier] for tier in found.tiers],
        list(found.profiles),
        "reclaim" in found.actions,
        cooldown_seconds(text),
        found.as_upstream,
    )


def turned(before: str, after: str) -> list[tuple[str, list[Named]]]:
    had, has = _named(before), _named(after)
    ends = [Named(name, _meaning(name, has)) for name in had if name not in has]
    begins = [Named(name, (ACTIONS | PLUGINS).get(name, "")) for name in has if name not in had]
    return [(gettext("What ends"), ends), (gettext("What begins"), begins)]


def _named(text: str) -> dict[str, None]:
    """Its actions and plugins, each once and in their order."""
    found = outline(text)
    return dict.fromkeys((*found.actions, *chain(*found.tiers))) if found else {}


def _meaning(gone: str, stay: Collection[str]) -> Promise | str:
    alike = next((names for names in WITHOUT if gone in names), (gone,))
    if others := [name for name in alike if name in stay]:
        return gettext("%(action)s stays for the same") % {"action": others[0]}
    return WITHOUT.get(alike, PLUGINS.get(gone, ""))
