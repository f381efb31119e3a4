from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.receipt_view import within_quota
from tidesched_web.scheduling.models import Reclaim, ReclaimSource


def cards_of(amount: dict[str, Any]) -> dict[str, float]:
    return amount.get("cards") or {}


def is_hidden(amount: dict[str, Any]) -> bool:
    return amount.get("cards", {}) is None


def _amount(amount: dict[str, Any]) -> str:
    return amounts.cards_text(cards_of(amount)) or _("room")


def evicted(gangs: int) -> str:
    return ngettext("%(n)s gang was evicted", "%(n)s gangs were evicted", gangs) % {"n": amounts.number(gangs)}


def took(receipt: Mapping[str, Any]) -> str:
    """One reclaim in a row of the audit log: "8 × H200 from tune-a, within quota"."""
    gangs = [str(victim["gang"]).rpartition("/")[2] for victim in receipt.get("victims") or ()]
    named = listed(gangs[:2]) if len(gangs) < 3 else f"{listed(gangs[:2])} +{len(gangs) - 2}"
    facts = {"cards": _amount(receipt.get("freed") or {}), "gangs": named}
    match within_quota(receipt):
        case True:
            return _("%(cards)s from %(gangs)s, within quota") % facts
        case False:
            return _("%(cards)s from %(gangs)s, above its quota") % facts
    return _("%(cards)s from %(gangs)s") % facts


def said_of(row: Reclaim) -> str:
    """One sentence of what the reader may know: amounts of the other side are left out of it."""
    fell = len(row.victim_rows)  # type: ignore[attr-defined]  # annotated by the selector
    gone = evicted(fell)
    if not is_hidden(row.freed):
        gone = ngettext(
            "%(n)s gang was evicted and freed %(freed)s", "%(n)s gangs were evicted and freed %(freed)s", fell
        ) % {"n": amounts.number(fell), "freed": _amount(row.freed)}
    facts = {"reclaimer": row.reclaimer, "gone": gone}
    if row.reclaimer and is_hidden(row.needed):
        return _("%(reclaimer)s took cards back: %(gone)s.") % facts
    if row.reclaimer:
        return _("%(reclaimer)s needed %(needed)s; %(gone)s.") % (facts | {"needed": _amount(row.needed)})
    if row.source == ReclaimSource.OBSERVED:
        return _("%(gone)s; the cluster does not say for whom.") % facts
    return _("A plugin of the policy wanted the room: %(gone)s.") % facts
