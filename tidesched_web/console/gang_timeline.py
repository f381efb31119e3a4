"""The timeline of a gang's page; a gang that flips between the same two reasons is one entry of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.common.permissions import Access
from tidesched_web.console import reason_words
from tidesched_web.console.states import look

# So many changes between two reasons, and no fewer, are shown as one entry.
LEAST_FLIPS = 4


@dataclass(frozen=True, slots=True)
class Flips:
    """Reasons that took turns: how often they changed, between which two, from when to when."""

    times: int
    first: str
    second: str
    start: dt.datetime
    end: dt.datetime
    kind: str = "flips"

    @property
    def at(self) -> dt.datetime:
        return self.end


def timeline(access: Access, rows: Iterable[dict[str, Any]], *, own_queue: bool = True) -> list[Any]:
    """The steps of a gang, the newest first, with their words. Rows are those of `workloads.selectors.with_steps`."""
    found: list[Any] = []
    for is_reason, group in groupby(rows, key=lambda row: row["kind"] == "reason" and bool(row["detail"].get("code"))):
        steps = list(group)
        found.extend(
            _folded(access, steps, own_queue) if is_reason else (_step(access, row, own_queue) for row in steps)
        )
    return found


def _folded(access: Access, steps: list[dict[str, Any]], own_queue: bool) -> Iterator[Any]:
    place = 0
    while place < len(steps):
        end = place
        codes: set[str] = set()
        while end < len(steps) and len(codes | {steps[end]["detail"]["code"]}) <= 2:
            codes.add(steps[end]["detail"]["code"])
            end += 1
        run = steps[place:end]
        if len(run) - 1 < LEAST_FLIPS or len(codes) < 2:
            yield _step(access, steps[place], own_queue)
            place += 1
            continue
        # The newest of them stands by itself: it says how the gang waits now, with its figures.
        yield _step(access, run[0], own_queue)
        times = [dt.datetime.fromisoformat(row["at"]) for row in run]
        yield Flips(len(run) - 1, run[-1]["detail"]["code"], run[-2]["detail"]["code"], times[-1], times[0])
        place = end


def _step(access: Access, row: dict[str, Any], own_queue: bool) -> dict[str, Any]:
    detail = row["detail"]
    sentence = reason_words.reason_detail(detail.get("code", ""), detail.get("message", ""))
    if not sentence and detail.get("numbers"):
        numbers = reason_words.own_numbers(access, detail["numbers"]) if own_queue else {}
        sentence = reason_words.reason_sentence(detail["code"], numbers)
    if made_by := detail.get("made_by"):
        who = look("maker", made_by).word
        sentence = ngettext(
            "%(n)s pod of it was evicted. By: %(who)s.", "%(n)s pods of it were evicted. By: %(who)s.", detail["pods"]
        ) % {"n": detail["pods"], "who": who}
    elif detail.get("waits_no_more"):
        ready = ngettext("It has %(n)s pod and waits no more.", "It has %(n)s pods and waits no more.", detail["ready"])
        sentence = ready % {"n": detail["ready"]}
    elif row["kind"] == "reclaimed" and row["reclaim_id"]:
        sentence = _("Evicted by reclaim %(n)s.") % {"n": row["reclaim_id"]}
    word = look("step", row["kind"]).word
    return row | {"at": dt.datetime.fromisoformat(row["at"]), "word": word, "sentence": sentence}
