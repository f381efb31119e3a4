import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.common import reader_zone
from tidesched_web.console import amounts
from tidesched_web.scheduling.models import Reclaim
from tidesched_web.scheduling.tide_figures_selectors import Figures, Moment


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
    if turn := found.turn():
        flood, at = turn
        title = _("Until inference peaks") if flood else _("Until the next low of inference")
        explained = _("a peak came at that hour yesterday") if flood else _("a low came at that hour yesterday")
        wait = amounts.duration(max(0.0, (at - now).total_seconds()))
        figures.append(Figure(title, wait, explained=explained))
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


def sentence(found: Figures, now: dt.datetime) -> str:
    if found.now is None:
        return ""
    lent = amounts.number(round(found.now.lent))
    turn = found.turn()
    if turn is None:
        if len(found.inference) < 2:
            return ""
        return _("No tide is recorded yet for a whole day, or the day was even; cards lent to training: %(lent)s.") % {
            "lent": lent
        }
    flood, at = turn
    facts = {"lent": lent, "wait": amounts.duration(max(0.0, (at - now).total_seconds()))}
    if flood:
        return _("The tide comes in: inference peaks in %(wait)s, as it did yesterday; cards lent: %(lent)s.") % facts
    return (
        _("The tide goes out: the next low of inference is in %(wait)s, as it was yesterday; cards lent: %(lent)s.")
        % facts
    )


def peak_line(found: Figures) -> str:
    peak = found.last_peak()
    if peak is None or found.now is None:
        return ""
    at, height = peak
    return _("Last peak of inference: about %(cards)s of %(total)s physical cards, at %(at)s.") % {
        "cards": amounts.number(round(height)),
        "total": amounts.number(round(found.now.total)),
        "at": reader_zone.named(at),
    }


def _trend(now: float, earlier: float | None, unit: Callable[[int], str] | None = None) -> str:
    if earlier is None:
        return ""
    difference = round(now) - round(earlier)
    if not difference:
        return _("as yesterday")
    named = f" {unit(abs(difference))}" if unit else ""
    signed = f"{'+' if difference > 0 else '−'}{amounts.number(abs(difference))}{named}"
    return _("%(difference)s since yesterday") % {"difference": signed}
