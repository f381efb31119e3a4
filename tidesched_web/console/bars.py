"""Everything is in milli-cards; places and widths in percent of the bar."""

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from tidesched_web.console import amounts


class Segment(NamedTuple):
    kind: str
    x: float
    width: float
    label: str


@dataclass(slots=True)
class UsageBar:
    segments: list[Segment]
    label: str
    text: str
    tick: float | None = None
    hardware: float | None = None
    empty: str = ""
    extra: str = field(default="", kw_only=True)


def _lay(parts: list[tuple[str, int, str]], scale: int) -> list[Segment]:
    segments, start = [], 0.0
    for kind, size, word in parts:
        if size <= 0:
            continue
        width = 100 * size / scale
        segments.append(Segment(kind, round(start, 3), round(width, 3), f"{word}: {amounts.number(size / 1000)}"))
        start += width
    return segments


class _Words(NamedTuple):
    """The words of a queue's bar, found once a language: a large page has hundreds of bars."""

    no_quota: str
    in_use: str
    borrowed: str
    beyond: str
    promised: str
    n_promised: str
    n_waiting: str
    used_of: str
    waiting_promised: str


@cache
def _words(_language: str | None) -> _Words:
    return _Words(
        no_quota=_("No quota"),
        in_use=_("in use"),
        borrowed=_("in use on borrowed cards"),
        beyond=_("in use beyond the quota"),
        promised=_("promised to admitted gangs"),
        n_promised=_("%(n)s promised"),
        n_waiting=_("%(n)s waiting"),
        used_of=_("%(used)s of %(quota)s"),
        waiting_promised=_("%(n)s waiting, of which %(promised)s promised"),
    )


def queue_bar(
    service_type: str, quota: int, allocated: int, inqueue: int, *, waiting: int = 0, borrowed: int = 0
) -> UsageBar:
    words = _words(get_language())
    if quota <= 0 and allocated <= 0 and inqueue <= 0:
        return UsageBar([], words.no_quota, "", empty=words.no_quota)
    if quota <= 0 and allocated <= 0:
        # Promised as a choice of cards: which of them, and so which quota, is open until a node is chosen.
        text = words.n_promised % {"n": amounts.number(inqueue / 1000)}
        return UsageBar(_lay([(f"{service_type}-promised", inqueue, words.promised)], inqueue), text, text)
    scale = max(quota, allocated + inqueue, 1)
    within = min(allocated, quota)
    lent = min(borrowed, within)
    parts = [
        (service_type, within - lent, words.in_use),
        ("borrowed", lent, words.borrowed),
        (f"{service_type}-over", allocated - within, words.beyond),
        (f"{service_type}-promised", inqueue, words.promised),
    ]
    text = words.used_of % {"used": amounts.number(allocated / 1000), "quota": amounts.number(quota / 1000)}
    extra = []
    if 0 < inqueue <= waiting:  # what is promised to an admitted gang waits too, until it is there
        extra.append(
            words.waiting_promised % {"n": amounts.number(waiting / 1000), "promised": amounts.number(inqueue / 1000)}
        )
    else:
        if inqueue > 0:
            extra.append(words.n_promised % {"n": amounts.number(inqueue / 1000)})
        if waiting > 0:
            extra.append(words.n_waiting % {"n": amounts.number(waiting / 1000)})
    label = " · ".join([text, *extra])
    # The tick of a quota that fills the bar stands just inside it.
    return UsageBar(_lay(parts, scale), label, text, tick=min(100 * quota / scale, 99.6), extra=" · ".join(extra))


def card_bar(
    *, total: int, inference: int, training: int, borrowed: int, foreign: int, idle: int, waiting: int
) -> UsageBar:
    own = max(training - borrowed, 0)
    # More demand than this is drawn shorter than it is, so that what is in use stays readable; its number is exact.
    drawn = min(waiting, total // 2) if total else waiting
    scale = max(total + drawn, inference + training + foreign + idle, 1)
    parts = [
        ("inference", inference, _("inference")),
        ("training", own, _("training on its own cards") if borrowed else _("training")),
        ("borrowed", min(borrowed, training), _("training on borrowed cards")),
        ("foreign", foreign, _("foreign")),
        ("idle", idle, _("idle")),
    ]
    used = inference + training + foreign
    text = _("%(used)s of %(total)s") % {"used": amounts.number(used / 1000), "total": amounts.number(total / 1000)}
    segments = _lay(parts, scale)
    if waiting > 0:
        x = segments[-1].x + segments[-1].width if segments else 0.0
        word = f"{_('waiting')}: {amounts.number(waiting / 1000)}"
        segments.append(Segment("waiting", round(x, 3), round(100 * drawn / scale, 3), word))
    label = " · ".join([text, *(segment.label for segment in segments)])
    line = min(100 * total / scale, 99.6) if total else None
    return UsageBar(segments, label, text, hardware=line)


def change_bar(service_type: str, before: float, after: float, used: float) -> UsageBar:
    """A quota that changes, with what is in use of it: the tick is the new quota, the dashed line the old one."""
    scale = max(before, after, used, 1)
    kind = service_type or "plain"
    within = min(used, after)
    parts = [(kind, round(1000 * within), _("in use"))]
    beyond = round(1000 * (used - within))
    parts.append((f"{kind}-over" if service_type else "reclaimed", beyond, _("in use beyond the new quota")))
    label = _("%(used)s in use, quota %(before)s before and %(after)s after") % {
        "used": amounts.number(used),
        "before": amounts.number(before),
        "after": amounts.number(after),
    }
    tick, hardware = (min(100 * quota / scale, 99.6) for quota in (after, before))
    return UsageBar(_lay(parts, round(1000 * scale)), label, label, tick=tick, hardware=hardware)


def amount_bar(kind: str, size: float, largest: float, label: str) -> UsageBar:
    width = 100 * size / largest if largest > 0 else 0
    return UsageBar([Segment(kind, 0, round(width, 3), label)] if width else [], label, label)
