"""Votes about victims where every plugin answers gang by gang: one question for all candidates of a session.

A plugin that votes on victims (extension point ``reclaimable``) may also have the same method with ``_gangs`` at the
end of its name. It is asked instead when all that take part in the vote have one and do not answer None, so it must say
of a gang what the other method would say of each of its tasks."""

from collections.abc import Callable

import msgspec

from scheduler_core.framework.combine import Hooks
from scheduler_core.model.decision import Vote
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import Bools


class GangOpinion(msgspec.Struct, frozen=True, gc=False):
    """A plugin's answer about victims, gang by gang. ``allowed``: bool (G,), read only where the gang is a candidate;
    None = abstains. ``rule``: why a gang is refused."""

    allowed: Bools | None
    rule: Callable[[int], str] | None = None


class GangVerdict(msgspec.Struct, frozen=True, gc=False):
    """The combined answer: who may be taken, bool (G,), the votes, and the answers that refused a candidate."""

    allowed: Bools
    votes: tuple[Vote, ...]
    opinions: tuple[GangOpinion, ...]

    def rule(self, gang: int) -> str:
        """Why a candidate is refused: what the first plugin says that refuses it."""
        for opinion in self.opinions:
            if opinion.allowed is not None and not opinion.allowed[gang]:
                return opinion.rule(gang) if opinion.rule is not None else Rule.BY_VOTE.text()
        return Rule.NO_VOTE.text()


def gang_votes(hooks: Hooks, point: str, reclaimer: int, candidates: Bools) -> GangVerdict | None:
    """The walk of :meth:`Hooks.victims` over gangs; None when a plugin that is reached answers task by task only.
    ``point``: extension point. ``reclaimer``: gang. ``candidates``: bool (G,)."""
    if hooks.compat:
        return None
    votes: list[Vote] = []
    opinions: list[GangOpinion] = []
    nobody = candidates & False
    for number, tier in enumerate(hooks.tiers(point), start=1):
        standing: Bools | None = None
        for name, call in tier:
            ask = getattr(getattr(call, "__self__", None), f"{point}_gangs", None)
            if ask is None:
                return None
            opinion: GangOpinion | None = ask(reclaimer, candidates)
            if opinion is None:
                return None
            if opinion.allowed is None:
                votes.append(Vote(number, name, "abstain"))
                continue
            opinions.append(opinion)
            allowed = candidates & opinion.allowed
            standing = allowed if standing is None else standing & allowed
            votes.append(Vote(number, name, "permit" if allowed.any() else "reject"))
            if not standing.any():
                return GangVerdict(nobody, tuple(votes), tuple(opinions))
        if standing is not None:
            if hooks.guarded_below(point, number) or hooks.budgets_spare(standing):
                return None
            return GangVerdict(standing, tuple(votes), tuple(opinions))
    return GangVerdict(nobody, tuple(votes), tuple(opinions))
