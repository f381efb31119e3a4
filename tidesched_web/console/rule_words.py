from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from tidesched_web.console.resource_words import resource_label
from tidesched_web.engine.model import NodeRefusal, Rule, rule_of_text

RULES: dict[Rule, Promise] = {
    Rule.TIDE: gettext_lazy(
        "%(kind)s takes back from training within its own quota: "
        "whole gangs, lowest priority first, then least work lost"
    ),
    Rule.PREEMPTS: gettext_lazy(
        "higher priority takes from lower inside the queue: whole gangs, lowest priority first, then least work lost"
    ),
    Rule.PREEMPTS_OWN: gettext_lazy(
        "a pod of higher priority takes the place of one of its own gang that it can spare"
    ),
    Rule.GANG_RECLAIMS: gettext_lazy("a queue takes back within its own quota: what gangs can spare, then whole gangs"),
    Rule.GANG_PREEMPTS: gettext_lazy(
        "a gang takes from gangs of lower priority in its queue: what they can spare, then whole gangs"
    ),
    Rule.UPSTREAM_RECLAIMS: gettext_lazy(
        "a running pod of another reclaimable queue, on the first node where that is enough"
    ),
    Rule.UPSTREAM_PREEMPTS: gettext_lazy("pods of lower priority in the queue, on the best node where that is enough"),
    Rule.POD_PREEMPTS: gettext_lazy(
        "pods of lower priority, on the node where the fewest and least important have to leave"
    ),
    Rule.SENT_AWAY: gettext_lazy("plugin %(plugin)s evicts it: %(why)s"),
    Rule.NO_BUDGET: gettext_lazy("no PodDisruptionBudget protects it"),
    Rule.SAME_QUEUE: gettext_lazy("same queue"),
    Rule.NOT_RECLAIMABLE: gettext_lazy("queue is not reclaimable"),
    Rule.GIVEN_ROOM: gettext_lazy("was given room in this session"),
    Rule.GANG_PROTECTED: gettext_lazy('PodGroup says volcano.sh/preemptable: "false"'),
    Rule.POD_PROTECTED: gettext_lazy('pod says volcano.sh/preemptable: "false"'),
    Rule.SYSTEM_NAMESPACE: gettext_lazy("namespace %(namespace)s is protected"),
    Rule.SYSTEM_CLASS: gettext_lazy("priority class %(name)s is protected"),
    Rule.COOLING_DOWN: gettext_lazy("was evicted less than %(seconds)s s ago"),
    Rule.BUDGET: gettext_lazy("PodDisruptionBudget %(name)s allows no more disruptions"),
    Rule.NOT_EVERY_MEMBER: gettext_lazy("not every member may be taken"),
    Rule.BELOW_MINIMUM: gettext_lazy("the gang would fall below minMember"),
    Rule.PRIORITY: gettext_lazy("priority is not lower"),
    Rule.TIDE_TAKER: gettext_lazy("%(kind)s takes nothing back"),
    Rule.TIDE_VICTIM: gettext_lazy("%(kind)s is never taken back"),
    Rule.TREE_BROKEN: gettext_lazy("the tree of queues is broken"),
    Rule.QUEUE_UNUSABLE: gettext_lazy("its queue cannot be used as written"),
    Rule.NOTHING_ASKED_FOR: gettext_lazy("it holds nothing of what is asked for"),
    Rule.BELOW_GUARANTEE: gettext_lazy("its queue would fall below its guarantee"),
    Rule.DESERVED: gettext_lazy("its queue uses no more than it deserves"),
    Rule.SMALLER_SHARE: gettext_lazy("its gang would have the smaller share"),
    Rule.QUEUE_SMALLER_SHARE: gettext_lazy("its queue would have the smaller share"),
    Rule.EXTENDER: gettext_lazy("the extender does not answer"),
    Rule.EXTENDER_OTHERS: gettext_lazy("the extender does not name it"),
    Rule.TAKER_PREEMPTABLE: gettext_lazy("the preemptor is preemptable itself"),
    Rule.NOT_PREEMPTABLE: gettext_lazy("is not preemptable, or does not run"),
    Rule.REVOCABLE_ZONE: gettext_lazy("runs in a revocable zone"),
    Rule.GANG_BUDGET: gettext_lazy("the budget of its gang (jdb) is used up"),
    Rule.ASKS_FOR_SOMETHING: gettext_lazy("it asks for something, the preemptor for nothing"),
    Rule.BY_VOTE: gettext_lazy("a plugin of the policy votes against it"),
    Rule.NO_VOTE: gettext_lazy("no plugin of the policy votes for it"),
    Rule.COOLDOWN_LEFT: gettext_lazy("cools down for %(seconds)s s more"),
    Rule.TOO_LITTLE: gettext_lazy("its eviction would not make enough room"),
    Rule.SHORT_ON_NODE: gettext_lazy(
        "its eviction would not make enough room: on %(node)s it frees %(frees)s of %(what)s, %(free)s more free, "
        "a pod needs %(needs)s, %(short)s short"
    ),
    Rule.FEWER_PODS: gettext_lazy(
        "its eviction would make room for %(fits)s of %(wanted)s pods: on %(node)s it frees %(frees)s of %(what)s, "
        "%(free)s more free, a pod needs %(needs)s"
    ),
    Rule.NOT_REACHED: gettext_lazy("its eviction would make enough room; the bounded search did not come to it"),
    Rule.AS_DEAR: gettext_lazy("costs as much as all gangs of the chosen set together, or more"),
    Rule.DEARER: gettext_lazy("dearer than a gang of the chosen set whose place it could take"),
    Rule.LATER_BY_NAME: gettext_lazy(
        "costs as much as a gang of the chosen set whose place it could take, and comes later by name"
    ),
}

KINDS: dict[str, Promise] = {
    "inference": gettext_lazy("inference"),
    "training": gettext_lazy("training"),
    "unknown": gettext_lazy("work of unknown type"),
}

NODE_REFUSALS: dict[NodeRefusal, Promise] = {
    NodeRefusal.NO_SUCH_CARD: gettext_lazy("has no such card"),
    NodeRefusal.TOO_FEW_CARDS: gettext_lazy("has too few of the cards even when empty"),
    NodeRefusal.CARDS_IN_USE: gettext_lazy("has its cards in use or promised"),
    NodeRefusal.TOO_MANY_PODS: gettext_lazy("has no room for another pod"),
    NodeRefusal.PROMISED: gettext_lazy("has its room promised to another gang"),
    NodeRefusal.UNSCHEDULABLE: gettext_lazy("is cordoned"),
    NodeRefusal.NODE_SELECTOR: gettext_lazy("does not have the labels of the node selector"),
    NodeRefusal.NODE_AFFINITY: gettext_lazy("does not fit the node affinity"),
    NodeRefusal.TAINT: gettext_lazy("has a taint that is not tolerated"),
    NodeRefusal.HOST_PORT: gettext_lazy("has the host port in use"),
    NodeRefusal.NO_TOPOLOGY_LABEL: gettext_lazy("lacks the label of the topology spread"),
    NodeRefusal.TOPOLOGY_SPREAD: gettext_lazy("would break the topology spread"),
    NodeRefusal.POD_AFFINITY: gettext_lazy("has no pod that the pod affinity asks for"),
    NodeRefusal.POD_ANTI_AFFINITY: gettext_lazy("has a pod that the anti-affinity forbids"),
    NodeRefusal.UNWANTED: gettext_lazy("has a pod whose anti-affinity forbids this one"),
    NodeRefusal.CLAIM_MISSING: gettext_lazy("is not looked at: a volume claim does not exist"),
    NodeRefusal.CLAIM_LEAVING: gettext_lazy("is not looked at: a volume claim is being deleted"),
    NodeRefusal.CLAIM_UNBOUND: gettext_lazy("is not looked at: a volume claim is not bound"),
    NodeRefusal.VOLUME_LOST: gettext_lazy("is not looked at: a volume is lost"),
    NodeRefusal.VOLUME_MISSING: gettext_lazy("is not looked at: a volume does not exist"),
    NodeRefusal.VOLUME_OF_ANOTHER: gettext_lazy("is not looked at: a volume belongs to another claim"),
    NodeRefusal.VOLUME_AFFINITY: gettext_lazy("cannot reach a bound volume"),
    NodeRefusal.VOLUME_ZONE: gettext_lazy("is not in the zone of a bound volume"),
    NodeRefusal.NO_VOLUME: gettext_lazy("has no volume that a claim could be bound to"),
    NodeRefusal.VOLUME_IN_USE: gettext_lazy("has a volume in use that one pod alone may use"),
    NodeRefusal.VOLUME_LIMIT: gettext_lazy("can attach no more volumes"),
    NodeRefusal.MACHINE_GROUP: gettext_lazy("belongs to another machine group"),
    NodeRefusal.CARD_MODEL: gettext_lazy("does not have the card model"),
    NodeRefusal.RARE_CARD: gettext_lazy("has rare cards, kept for pods that ask for them"),
    NodeRefusal.DEVICES: gettext_lazy("has too little of its devices left"),
    NodeRefusal.NUMA_POLICY: gettext_lazy("has another NUMA policy"),
    NodeRefusal.NUMA_CELLS: gettext_lazy("has too few CPUs free in its NUMA cells"),
    NodeRefusal.REVOCABLE_ZONE: gettext_lazy("is in a revocable zone that is closed to it"),
    NodeRefusal.NODE_GROUP: gettext_lazy("belongs to another node group"),
    NodeRefusal.RESERVED: gettext_lazy("is kept for an elected gang"),
    NodeRefusal.EXTENDER: gettext_lazy("is refused by an extender"),
    NodeRefusal.CPU_LOAD: gettext_lazy("has too high a CPU load"),
    NodeRefusal.MEMORY_LOAD: gettext_lazy("has too high a memory load"),
}


def rule_text(rule: str) -> str:
    text = _translated(rule)
    return text if text == rule and rule_of_text(rule) is None else text[:1].upper() + text[1:]


def _translated(text: str) -> str:
    known = rule_of_text(text)
    if known is None:
        return text
    rule, about = known
    shown = {name: _shown(name, value) for name, value in about.items()}
    return str(RULES[rule]) % shown if shown else str(RULES[rule])


def _shown(name: str, value: str) -> str:
    if name == "kind":
        return str(KINDS.get(value, value))
    if name == "what":
        return resource_label(value)
    return _translated(value) if name == "why" else value


def node_refusals(numbers: Mapping[str, Any]) -> list[tuple[str, int]]:
    nodes: Mapping[str, int] = numbers.get("nodes") or {}
    ordered = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    return [(refusal_text(key), number) for key, number in ordered]


def refusal_text(key: str) -> str:
    try:
        return str(NODE_REFUSALS[NodeRefusal(key)])
    except ValueError:
        pass
    for ending, template in _AMOUNTS.items():
        if key.endswith(ending):
            return str(template) % {"resource": resource_label(key.removesuffix(ending))}
    return key


_AMOUNTS: dict[str, Promise] = {
    " in use": gettext_lazy("has too little left of %(resource)s"),
    " too small": gettext_lazy("has too little of %(resource)s even when empty"),
}
