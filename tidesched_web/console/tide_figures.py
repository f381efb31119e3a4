import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.console import amounts
from tidesched_web.scheduling.models import Reclaim
from tidesched_web.scheduling.tide_figures_selectors import DAY, Figures, Moment


@dataclass(frozen=True, slots=True)
class Figure:
    word: str
    value: str
    trend: str = ""
    explained: str = ""
    view: str = ""
    query: str = ""
    moment: dt.datetime | None = None


def shown(
    found: Figures,
    *,
    gangs: int,
    reclaims: Sequence[Reclaim],
    now: dt.datetime,
    stopped: bool = False,
    whole: bool = True,
) -> list[Figure]:
    if found.now is None:
        return []
    figures = _figures_now(found.now, found.earlier, gangs=gangs, stopped=stopped, whole=whole)
    if reclaims:
        fell = len(reclaims[0].victim_rows)  # type: ignore[attr-defined]
        words = ngettext("%(n)s gang lost its cards", "%(n)s gangs lost their cards", fell)
        explained = words % {"n": amounts.number(fell)}
        figures.append(Figure(_("Last reclaim"), "", explained=explained, view="reclaims", moment=reclaims[0].at))
    if turns := found.turns():
        # Use that rises has its peak before it, whatever the last days did at this hour.
        peak = found.direction == 1 if found.direction else turns.get(True, now + DAY) < turns.get(False, now + DAY)
        if at := turns.get(peak):
            title = _("Until inference peaks") if peak else _("Until the next low of inference")
            figures.append(Figure(title, _wait(at, now), explained=_("by the mean of the last days")))
    return figures


def _figures_now(now: Moment, earlier: Moment | None, *, gangs: int, stopped: bool, whole: bool) -> list[Figure]:
    waiting = amounts.number(round(now.waiting))
    return [
        Figure(
            _("Cards in use"),
            f"{amounts.number(round(now.utilisation))} %",
            _trend(now.utilisation, earlier.utilisation if earlier else None, lambda n: ngettext("point", "points", n)),
            _("%(used)s of %(total)s physical cards")
            % {"used": amounts.number(round(now.used)), "total": amounts.number(round(now.total))},
            "nodes",
        ),
        Figure(
            _("Idle while waited for"),
            amounts.number(round(now.idle_wanted)),
            _trend(now.idle_wanted, earlier.idle_wanted if earlier else None),
            _("physical cards of types that gangs wait for: sending is stopped, so none is assigned")
            if stopped
            else _("physical cards of types that gangs wait for: scattered, or out of quota"),
            "gangs",
            "?needs=yes",
        ),
        Figure(
            _("Gangs that wait") if whole else _("Your gangs that wait"),
            amounts.number(gangs),
            _trend(now.waiting, earlier.waiting if whole and earlier else None, lambda n: ngettext("card", "cards", n)),
            _("for %(cards)s physical cards") % {"cards": waiting}
            if whole
            else _("the gangs of all tenants wait for %(cards)s physical cards") % {"cards": waiting},
            "gangs",
            "?order=waiting",
        ),
        Figure(
            _("Lent to training"),
            amounts.number(round(now.lent)),
            _trend(now.lent, earlier.lent if earlier else None),
            _("physical cards that inference may take back"),
            "queues",
            "?state=lends&order=lent",
        ),
    ]


def _wait(at: dt.datetime, now: dt.datetime) -> str:
    return amounts.duration(max(0.0, (at - now).total_seconds()))


def sentence(found: Figures, now: dt.datetime) -> str:
    turns = sorted(found.turns().items(), key=lambda turn: turn[1])
    if found.now is None or (found.direction is None and not turns):
        return ""
    goes = (_("Inference is steady"), _("Inference rises"), _("Inference falls"))
    said = [_("Inference") if found.direction is None else goes[found.direction]]
    for peak, at in turns:
        words = _("its next peak is in %(wait)s") if peak else _("its next low is in %(wait)s")
        said.append(words % {"wait": _wait(at, now)})
    return " · ".join([*said, _("cards lent to training: %(lent)s") % {"lent": amounts.number(round(found.now.lent))}])


def _trend(now: float, earlier: float | None, unit: Callable[[int], str] | None = None) -> str:
    if earlier is None:
        return ""
    difference = round(now) - round(earlier)
    if not difference:
        return _("as yesterday")
    named = f" {unit(abs(difference))}" if unit else ""
    signed = f"{'+' if difference > 0 else '−'}{amounts.number(abs(difference))}{named}"
    return _("%(difference)s since yesterday") % {"difference": signed}
