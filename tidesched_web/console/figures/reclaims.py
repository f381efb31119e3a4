"""Cards of several types are added up, so all are physical ones: a slice is as high as its part of a card."""

import datetime as dt
import zlib
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import plotly.graph_objects as go
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.common.card_names import card_label
from tidesched_web.common.physical import share_of_board
from tidesched_web.console import amounts
from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import palette

MAX_CARDS = 6
HOUR = dt.timedelta(hours=1)
_SHAPES = ("", "/", "x", "\\", ".", "-", "|", "+")

Taken = Sequence[tuple[dt.datetime, str, float]]


def by_card(taken: Taken) -> dict[str, dict[dt.datetime, float]]:
    sums: dict[str, float] = {}
    for _hour, card, cards in taken:
        sums[card] = sums.get(card, 0) + cards * float(share_of_board(card))
    largest = sorted(sums, key=lambda card: (-sums[card], card))
    kept = largest if len(largest) <= MAX_CARDS else largest[: MAX_CARDS - 1]
    found: dict[str, dict[dt.datetime, float]] = {card: {} for card in kept}
    for hour, card, cards in taken:
        hours = found.setdefault(card if card in kept else "", {})
        hours[hour] = hours.get(hour, 0) + (cards if card in kept else cards * float(share_of_board(card)))
    return found


def hours_from(since: dt.datetime, now: dt.datetime) -> list[dt.datetime]:
    return [since + HOUR * number for number in range(int((now - since) / HOUR) + 1)]


def filter_of(hour: dt.datetime, card: str) -> str:
    bounds = {"from": _local(hour), "to": _local(hour + HOUR)}
    return "?" + urlencode(bounds | ({"card": card} if card else {}))


def look_of(card: str, known: Sequence[str], steps: Sequence[str]) -> tuple[str, str]:
    """By its place among the ``known`` types of the cluster, so it is the same in every picture."""
    if not card:
        return steps[-1], _SHAPES[-1]
    place = known.index(card) if card in known else len(known) + zlib.crc32(card.encode()) % 7
    turn, hue = divmod(place, len(steps) - 1)
    return steps[hue], _SHAPES[(hue + turn) % (len(_SHAPES) - 1)]


def figure(hours: Sequence[dt.datetime], taken: Taken, theme: str, known: Sequence[str]) -> go.Figure:
    if not taken:
        return go.Figure()
    colours = palette(theme)
    traces = [
        _bars(hours, card, cards, look_of(card, known, colours.steps), colours.surface)
        for card, cards in by_card(taken).items()
    ]
    layout = base.layout(
        colours,
        unit=_("physical cards"),
        times=True,
        barmode="stack",
        bargap=0.2,
        showlegend=True,
        # Beside the bars: above them it would take their height, and there is little of it.
        legend={"orientation": "v", "x": 1.02, "y": 1, "font": {"color": colours.text}, "traceorder": "normal"},
        margin={"l": 56, "r": 16, "t": 8, "b": 40},
    )
    layout.hovermode = "closest"
    end = base.local(hours[-1] + HOUR / 2)
    layout.xaxis.update(range=[base.local(hours[0] - HOUR / 2), end], nticks=8)
    return go.Figure(traces, layout)


def _bars(
    hours: Sequence[dt.datetime], card: str, cards: Mapping[dt.datetime, float], look: tuple[str, str], surface: str
) -> go.Bar:
    name = card_label(card) if card else _("other cards")
    there = [hour for hour in hours if cards.get(hour)]
    texts = [amounts.number(cards[hour]) for hour in there]
    share = float(share_of_board(card))
    return go.Bar(
        x=[base.local(hour) for hour in there],
        y=[cards[hour] * share for hour in there],
        name=name,
        customdata=[filter_of(hour, card) for hour in there],
        text=texts,
        textposition="none",
        hovertemplate="%{x|%m-%d %H:%M}<br>%{text} × " + name + "<extra></extra>",
        width=HOUR.total_seconds() * 800,
        marker={
            "color": look[0],
            "pattern": {"shape": look[1], "fillmode": "overlay", "fgcolor": surface, "size": 6, "solidity": 0.2},
        },
    )


def _local(moment: dt.datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M")
