"""The rules by which pods are taken and kept, a closed list: each a sentence with places for what it speaks of. Results
and records hold the sentence; :func:`rule_of_text` finds the rule and what it speaks of again, so that a reader can be
shown it in another language. Plugins of one's own may give sentences of their own."""

import enum
import re
from functools import cache


class Rule(enum.StrEnum):
    """By what it says; the values are the sentences of results."""

    # What allows it.
    TIDE = (
        "{kind} takes back from training within its own quota: whole gangs, lowest priority first, then least work lost"
    )
    PREEMPTS = (
        "higher priority takes from lower inside the queue: whole gangs, lowest priority first, then least work lost"
    )
    PREEMPTS_OWN = "a task of higher priority takes the place of one of its own gang that it can spare"
    GANG_RECLAIMS = "a queue takes back within its own quota: what gangs can spare, then whole gangs"
    GANG_PREEMPTS = "a gang takes from lower ones of its queue: what they can spare, then whole gangs"
    UPSTREAM_RECLAIMS = "a running pod of another reclaimable queue on the first node that works out"
    UPSTREAM_PREEMPTS = "lower pods of the queue on the best node that works out"
    POD_PREEMPTS = "lower pods on the node where the fewest and least important have to leave"
    SENT_AWAY = "plugin {plugin} sends it away: {why}"
    NO_BUDGET = "no PodDisruptionBudget protects it"
    # What keeps a candidate.
    SAME_QUEUE = "same queue"
    NOT_RECLAIMABLE = "queue is not reclaimable"
    GIVEN_ROOM = "was given room in this session"
    GANG_PROTECTED = 'PodGroup says volcano.sh/preemptable: "false"'
    POD_PROTECTED = 'pod says volcano.sh/preemptable: "false"'
    SYSTEM_NAMESPACE = "namespace {namespace} is protected"
    SYSTEM_CLASS = "priority class {name} is protected"
    COOLING_DOWN = "was evicted less than {seconds} s ago"
    BUDGET = "PodDisruptionBudget {name} allows no more disruptions"
    NOT_EVERY_MEMBER = "not every member may be taken"
    BELOW_MINIMUM = "the gang would fall below minMember"
    PRIORITY = "priority is not lower"
    TIDE_TAKER = "{kind} takes back from nobody"
    TIDE_VICTIM = "{kind} is never taken back"
    TREE_BROKEN = "the tree of queues is broken"
    QUEUE_UNUSABLE = "its queue cannot be used as written"
    NOTHING_ASKED_FOR = "it holds nothing of what is asked for"
    BELOW_GUARANTEE = "its queue would fall below its guarantee"
    DESERVED = "its queue uses no more than it deserves"
    SMALLER_SHARE = "its gang would have the smaller share"
    QUEUE_SMALLER_SHARE = "its queue would have the smaller share"
    EXTENDER = "extender"
    EXTENDER_OTHERS = "the extender does not name it"
    TAKER_PREEMPTABLE = "the preemptor is preemptable itself"
    NOT_PREEMPTABLE = "is not preemptable, or does not run"
    REVOCABLE_ZONE = "runs in a revocable zone"
    GANG_BUDGET = "its gang's budget (jdb) is used up"
    ASKS_FOR_SOMETHING = "asks for something, and the preemptor for nothing"
    BY_VOTE = "refused by vote"
    NO_VOTE = "no plugin votes for it"
    COOLDOWN_LEFT = "cools down for {seconds} s more"
    # Why a candidate that might have been taken was not.
    TOO_LITTLE = "its leaving would not make enough room"
    SHORT_ON_NODE = (
        "its leaving would not make enough room: on {node} it frees {frees} of {what}, {free} more free, "
        "a pod needs {needs}, {short} short"
    )
    FEWER_PODS = (
        "its leaving would make room for {fits} of {wanted} pods: on {node} it frees {frees} of {what}, "
        "{free} more free, a pod needs {needs}"
    )
    NOT_REACHED = "its leaving would make enough room; the bounded search did not come to it"
    AS_DEAR = "costs as much as all gangs of the chosen set together, or more"
    DEARER = "dearer than a gang of the chosen set whose place it could take"
    LATER_BY_NAME = "costs as much as a gang of the chosen set whose place it could take, and comes later by name"

    def text(self, **about: object) -> str:
        return self.value.format(**about) if about else self.value


@cache
def _pattern(rule: Rule) -> re.Pattern[str]:
    parts = re.split(r"\\{(\w+)\\}", re.escape(rule.value))
    named = (f"(?P<{part}>.+)" if number % 2 else part for number, part in enumerate(parts))
    return re.compile("".join(named))


_PLAIN = {rule.value: rule for rule in Rule if "{" not in rule.value}
_WITH_PLACES = tuple(rule for rule in Rule if "{" in rule.value)


def rule_of_text(text: str) -> tuple[Rule, dict[str, str]] | None:
    """The rule that a sentence states and what it speaks of; None for a sentence that is no rule of the list."""
    plain = _PLAIN.get(text)
    if plain is not None:
        return plain, {}
    for rule in _WITH_PLACES:
        found = _pattern(rule).fullmatch(text)
        if found is not None:
            return rule, found.groupdict()
    return None
