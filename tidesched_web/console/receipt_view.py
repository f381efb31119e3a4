from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.console import amounts
from tidesched_web.engine.model import Rule


@dataclass(frozen=True, slots=True)
class UseRow:
    """One queue and card. ``limit`` None = no limit; ``base`` None = not known, or the same as the limit."""

    queue: str
    card: str
    base: float | None
    limit: float | None
    plans: Sequence[str]
    before: float
    after: float
    # What the pods wait for that the eviction was for, where it is not known what they were assigned.
    waits_for: float = 0

    @property
    def gained(self) -> bool:
        return self.after > self.before

    @property
    def waits(self) -> bool:
        return self.waits_for > 0 and not self.gained

    @property
    def within(self) -> bool:
        return self.limit is None or self.after + self.waits_for <= self.limit


@dataclass(frozen=True, slots=True)
class CostRow:
    """Cost is compared from left to right; ``rule`` empty = evicted."""

    gang: str
    queue: str
    queue_priority: int | None
    priority: int | None
    work: float | None
    frees: float | None
    rule: str
    last_restart: bool = False
    nodes: Sequence[Mapping[str, Any]] = ()
    more_nodes: int = 0
    # Beside which evicted gang it cost more, and by how much; or what decided between two that cost the same.
    beside: str = ""

    @property
    def order(self) -> tuple[float, ...]:
        return tuple(-1 if value is None else value for value in (self.queue_priority, self.priority, self.work))


@dataclass(frozen=True, slots=True)
class ReceiptView:
    uses: Sequence[UseRow]
    costs: Sequence[CostRow]
    more: int | None
    unknown: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.uses)


# What nothing in the cluster says of a reclaim that others made.
UNKNOWN: dict[str, Promise] = {
    "reclaimer": _("for whom it was: no event and no nominated pod names a gang"),
    "votes": _("what the plugins of the other scheduler said"),
    "candidates": _("which other gangs it looked at, and why it passed them over"),
    "gain": _("what was assigned afterwards: use after counts what was evicted, and nothing that was gained"),
}


def receipt_view(
    receipt: Mapping[str, Any],
    victims: Sequence[Mapping[str, Any]],
    *,
    queue: str = "",
    needed: Mapping[str, float] | None = None,
) -> ReceiptView:
    unknown = receipt.get("unknown") or ()
    wants = (needed or {}) if "gain" in unknown else {}
    uses = [
        row
        for moment in receipt.get("queues") or ()
        for row in _uses(moment, wants if moment["queue"] == queue else {})
    ]
    fell = [_cost(victim, sum((victim.get("cards") or {}).values()), "") for victim in victims]
    spared = [_cost(one, one["frees"], one["rule"]) for one in receipt.get("candidates") or ()]
    spared = [replace(row, beside=_beside(row, fell)) for row in spared]
    costs = sorted([*fell, *spared], key=lambda row: (*row.order, row.gang))
    words = [str(UNKNOWN[code]) for code in unknown if code in UNKNOWN]
    return ReceiptView(uses, costs, receipt.get("more_candidates"), words)


def within_quota(receipt: Mapping[str, Any]) -> bool | None:
    """Whether who took stays within its quota with it; None where the receipt does not hold that."""
    own = [moment for moment in receipt.get("queues") or () if moment["queue"] == receipt.get("queue")]
    if "gain" in (receipt.get("unknown") or ()):
        return None
    return all(row.within for moment in own for row in _uses(moment, {})) if own else None


def _beside(row: CostRow, fell: Sequence[CostRow]) -> str:
    others = [one for one in fell if (row.frees or 0) >= (one.frees or 0) and None not in (one.work, row.work)]
    if row.rule == Rule.LATER_BY_NAME:
        same = next((one for one in others if one.order == row.order and one.gang < row.gang), None)
        return gettext("It costs the same as %(gang)s; the first name decides.") % {"gang": same.gang} if same else ""
    cheaper = [one for one in others if one.order < row.order]
    if row.rule != Rule.DEARER or not cheaper:
        return ""
    other = min(cheaper, key=lambda one: one.order)
    if row.queue_priority != other.queue_priority:
        return gettext("Its queue has a higher priority than that of %(gang)s.") % {"gang": other.gang}
    if row.priority != other.priority:
        return gettext("It has a higher priority than %(gang)s.") % {"gang": other.gang}
    more = (row.work or 0) - (other.work or 0)
    if more >= amounts.MINUTE:
        lost = gettext("It would lose %(work)s of work more than %(gang)s.")
        return lost % {"work": amounts.work(more), "gang": other.gang}
    said = gettext("It would lose %(more)s card-seconds of work more than %(gang)s.")
    return said % {"more": amounts.number(more) if more >= 1 else f"{more:.3f}", "gang": other.gang}


def _uses(moment: Mapping[str, Any], wants: Mapping[str, float]) -> list[UseRow]:
    base, quota = moment["base"] or {}, moment["quota"]
    cards = sorted({*moment["before"]["cards"], *moment["after"]["cards"]})
    return [
        UseRow(
            moment["queue"],
            card,
            base.get(card) if base.get(card) != quota.get(card) else None,
            quota.get(card),
            moment["plans"],
            moment["before"]["cards"].get(card, 0),
            moment["after"]["cards"].get(card, 0),
            wants.get(card, 0),
        )
        for card in cards
    ]


def _cost(row: Mapping[str, Any], frees: float, rule: str) -> CostRow:
    alone = row.get("alone") or {}
    return CostRow(
        row["gang"],
        row.get("queue") or "",
        row.get("queue_priority"),
        row.get("priority"),
        row.get("work_lost_card_seconds"),
        frees,
        rule,
        bool(row.get("last_restart")),
        alone.get("nodes", ())[1:],
        alone.get("more_nodes", 0),
    )
