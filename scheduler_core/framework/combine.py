"""The one walk over tiers and plugins, by combine rule.

Source: volcano-semantics 1.4 and the recommended rule of 1.5: "no plugin has decided yet" is something else than
"no victim is allowed", and an empty answer that does not abstain is a veto that ends the walk. With
``compatibility: volcano`` victims are combined as upstream does, where the two look the same."""

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from scheduler_core.framework.extension_points import EXTENSION_POINTS, points_of
from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.decision import Vote
from scheduler_core.state.status import Bools


class Ballot(enum.IntEnum):
    """One plugin's answer where votes are combined."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Opinion(msgspec.Struct, frozen=True, gc=False):
    """A plugin's answer about victims: the gangs' tasks it allows (None = abstains) and why it refuses the others.
    ``allowed``: task slots, or None to abstain. ``refused``: rule by task slot."""

    allowed: frozenset[int] | None
    refused: dict[int, str] = {}


class Verdict(msgspec.Struct, frozen=True, gc=False):
    allowed: frozenset[int]
    votes: tuple[Vote, ...]
    refused: dict[int, str]


Hook = tuple[str, Callable[..., Any]]  # plugin name, bound method


class Budgets(Protocol):
    """Disruption budgets, see :class:`scheduler_core.framework.disruption_budgets.DisruptionBudgets`."""

    def violations(self, tasks: Iterable[int]) -> dict[int, str]:
        """Those who may not leave if the others before them do, each with the budget that says so."""
        ...

    def cover_any(self, gangs: Bools) -> bool:
        """Whether a member in place of one of the gangs is covered."""
        ...


def guards(point: str, call: Callable[..., Any]) -> bool:
    """Whether a plugin's rule about victims holds in whichever tier the plugin is."""
    return point in getattr(getattr(call, "__self__", None), "guards", ())


class Hooks:
    """Registered functions by extension point: a list of tiers, each a list of (plugin name, function). ``compat``:
    combine victims with upstream's defects. ``function_at``: of a plugin, by the name of the point."""

    def __init__(
        self, tiers: Sequence[Sequence[tuple[Plugin, dict[str, bool]]]] = (), *, compat: bool = False,
        function_at: Callable[[Plugin, str], Callable[..., Any]] = getattr,
    ) -> None:  # fmt: skip
        self.compat = compat
        self._tiers: dict[str, list[list[Hook]]] = {point.name: [[] for _ in tiers] for point in EXTENSION_POINTS}
        for number, tier in enumerate(tiers):
            for plugin, switches in tier:
                for point in points_of(type(plugin)):
                    if not point.switch or switches.get(point.switch, True):
                        self._tiers[point.name][number].append((plugin.name, function_at(plugin, point.name)))
        self._flat: dict[str, list[Hook]] = {
            name: [hook for row in rows for hook in row] for name, rows in self._tiers.items()
        }
        self._budgets: Budgets | None = None

    def keep(self, budgets: Budgets) -> None:
        """From now on no pod is a victim that a disruption budget protects, whatever the plugins say."""
        self._budgets = budgets

    def budgets_spare(self, gangs: Bools) -> bool:
        """Whether budgets that are kept without a plugin cover a member of one of the gangs, bool (G,)."""
        return self._budgets is not None and self._budgets.cover_any(gangs)

    def tiers(self, point: str) -> list[list[Hook]]:
        """All tiers of a point, empty ones included, so that a tier's number is its place in the policy."""
        return self._tiers[point]

    def flat(self, point: str) -> list[Hook]:
        return self._flat[point]

    def key(self, point: str, *subject: Any) -> tuple[Any, ...]:
        """Sort keys of all registrants, one after the other."""
        parts: list[Any] = []
        for _, call in self._flat[point]:
            parts.extend(call(*subject))
        return tuple(parts)

    def vote(self, point: str, *subject: Any) -> Any | None:
        """None when permitted (also when all abstain), else what the rejecting plugin said. A function answers with a
        :class:`Ballot`, or with anything else to reject and say why."""
        for tier in self._tiers[point]:
            permitted = False
            for _, call in tier:
                answer = call(*subject)
                if answer is Ballot.PERMIT:
                    permitted = True
                elif answer is not Ballot.ABSTAIN:
                    return answer
            if permitted:
                return None
        return None

    def overruled(self, point: str, *subject: Any) -> list[str]:
        """Names of the plugins that had permitted before another one refused; for a vote that is refused."""
        permitted: list[str] = []
        for name, call in self._flat[point]:
            answer = call(*subject)
            if answer is Ballot.PERMIT:
                permitted.append(name)
            elif answer is not Ballot.ABSTAIN:
                break
        return permitted

    def refusal(self, point: str, *subject: Any) -> Any | None:
        """The first answer that is not None, over all tiers: all must agree by saying None."""
        for _, call in self._flat[point]:
            answer = call(*subject)
            if answer is not None:
                return answer
        return None

    def all_true(self, point: str, *subject: Any) -> bool:
        """True when every registrant says so (and when there is no registrant)."""
        return all(call(*subject) for _, call in self._flat[point])

    def any_true(self, point: str, *subject: Any) -> bool:
        return any(call(*subject) for _, call in self._flat[point])

    def first_tier_all(self, point: str, *subject: Any) -> bool:
        """The first tier that has a registrant decides, all of it together; False when there is no registrant."""
        for tier in self._tiers[point]:
            if tier:
                return all(call(*subject) for _, call in tier)
        return False

    def first(self, point: str, *subject: Any) -> Any | None:
        """Answer of the first registrant; None when there is none."""
        for _, call in self.flat(point):
            return call(*subject)
        return None

    def call_all(self, point: str, *subject: Any) -> None:
        for _, call in self.flat(point):
            call(*subject)

    def victims(self, point: str, subject: Any, candidates: Iterable[int]) -> Verdict:
        """Which of the candidates may be taken: the intersection inside the first tier that decides. Below it only
        guards are asked, plugins whose rule holds in any tier (:attr:`Plugin.guards`). An answer that is empty without
        abstaining ends the walk with no victim. No registrant means no victim."""
        pool = tuple(candidates)
        if self.compat:
            return self._victims_upstream(point, subject, pool)
        votes: list[Vote] = []
        refused: dict[int, str] = {}
        standing: frozenset[int] | None = None
        for number, tier in enumerate(self._tiers[point], start=1):
            decided = standing is not None
            for name, call in tier:
                if decided and not guards(point, call):
                    continue
                opinion: Opinion = call(subject, pool)
                if opinion.allowed is None:
                    votes.append(Vote(number, name, "abstain"))
                    continue
                for task, rule in opinion.refused.items():
                    refused.setdefault(task, rule)
                standing = opinion.allowed if standing is None else standing & opinion.allowed
                votes.append(Vote(number, name, "permit" if opinion.allowed else "reject"))
                if not standing:
                    return Verdict(frozenset(), tuple(votes), refused)
        if standing and self._budgets is not None:
            spared = self._budgets.violations(task for task in pool if task in standing)
            standing, refused = standing - spared.keys(), refused | spared
        return Verdict(standing or frozenset(), tuple(votes), refused)

    def guarded_below(self, point: str, number: int) -> bool:
        """Whether a guard is in a tier below this one, which is asked although the tier has decided."""
        return any(guards(point, call) for tier in self._tiers[point][number:] for _, call in tier)

    def _victims_upstream(self, point: str, subject: Any, pool: tuple[int, ...]) -> Verdict:
        """Upstream's walk (semantics 1.5): what is empty looks undecided. An empty answer ends its tier and lets the
        next one hand out victims; after disjoint answers the next plugin of the tier fills the set anew."""
        votes: list[Vote] = []
        refused: dict[int, str] = {}
        for number, tier in enumerate(self._tiers[point], start=1):
            standing: frozenset[int] = frozenset()
            for name, call in tier:
                opinion: Opinion = call(subject, pool)
                if opinion.allowed is None:
                    votes.append(Vote(number, name, "abstain"))
                    continue
                for task, rule in opinion.refused.items():
                    refused.setdefault(task, rule)
                votes.append(Vote(number, name, "permit" if opinion.allowed else "reject"))
                standing = standing & opinion.allowed if standing else opinion.allowed
                if not opinion.allowed:
                    break
            if standing:
                return Verdict(standing, tuple(votes), refused)
        return Verdict(frozenset(), tuple(votes), refused)

    def named(self, point: str, *subject: Any) -> dict[int, tuple[str, str]]:
        """Tasks that the first tier with any names, each with the plugin that named it first and why."""
        for tier in self._tiers[point]:
            found: dict[int, tuple[str, str]] = {}
            for name, call in tier:
                for task, why in call(*subject).items():
                    found.setdefault(task, (name, why))
            if found:
                return found
        return {}
