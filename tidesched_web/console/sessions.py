import datetime as dt
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.console import amounts, bars, hold_words, reason_words
from tidesched_web.console.chart import Chart, Twin, answer
from tidesched_web.console.export import csv_list
from tidesched_web.console.figures import timings as timings_figure
from tidesched_web.console.forms.sessions import SessionFilter
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.scheduling.holds import Hold, SendingStop, sending_stop
from tidesched_web.scheduling.models import Session
from tidesched_web.scheduling.selectors import (
    first_unsent,
    newest_timings,
    session_by_number,
    session_reclaims,
    visible_decisions,
    visible_sessions,
)
from tidesched_web.workloads.waits_selectors import waited_then

CHART_SESSIONS = 60
DECISIONS = 100
WAITED = 50


# As they follow each other; the database does not keep the order of keys.
ORDER = ("settle", "snapshot", "decide", "write", "send", "record")
ACTIONS = (
    "enqueue",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "gangpreempt",
    "gangreclaim",
    "elect",
    "reserve",
    "shuffle",
)
# The parts of the step "decide", one for each action of the policy.
PARTS = "engine."


def steps_of(timings: dict[str, float], *, parts: bool = False) -> dict[str, float]:
    known = [f"{PARTS}{action}" for action in ACTIONS] if parts else list(ORDER)
    steps = [step for step in timings if step.startswith(PARTS) is parts]
    return {
        step: timings[step]
        for step in sorted(steps, key=lambda step: (known.index(step) if step in known else 99, step))
    }


def total_ms(session: Session) -> float:
    return sum(steps_of(session.timings_ms).values())


@page(section="sessions", topics="sessions")
def sessions(this: Page) -> HttpResponse:
    cluster = this.cluster
    form = SessionFilter(this.request.GET)
    rows = form.apply(visible_sessions(this.access).filter(cluster=cluster))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"sessions-{cluster.slug}",
            {
                "number": lambda row: row.number,
                "state": lambda row: row.state,
                "started_at": lambda row: row.started_at.isoformat(),
                "now": lambda row: row.now.isoformat(),
                "milliseconds": lambda row: round(total_ms(row), 1),
                "binds": lambda row: row.counts.get("binds", 0),
                "evictions": lambda row: row.counts.get("evictions", 0),
                "reclaims": lambda row: row.counts.get("reclaims", 0),
            },
            rows.order_by("-id").iterator(chunk_size=1000),
        )
    found = paged(rows, ("-id",), this.request.GET.get("cursor", ""))
    for row in found.rows:
        row.total_ms = total_ms(row)
    chart = Chart(
        key="timings",
        question=_("How long do sessions take, and in which step?"),
        url=reverse("console:session_timings", args=[cluster.slug]),
        size="short",
    )
    return this.render(
        "sessions/sessions.html", {"page": found, "form": form, "chart": chart, "line": _line(found.rows)}
    )


def _line(rows: list[Session]) -> str:
    times = sorted(total_ms(row) for row in rows)
    if not times:
        return ""
    median, longest = times[len(times) // 2], times[-1]
    return _("Half of the newest %(n)s sessions took %(median)s or less, the longest %(longest)s.") % {
        "n": amounts.number(len(times)),
        "median": amounts.duration(median / 1000),
        "longest": amounts.duration(longest / 1000),
    }


@page()
def timings(this: Page) -> HttpResponse:
    cluster = this.cluster

    def series() -> list[timings_figure.TimingRow]:
        return [
            timings_figure.TimingRow(number, steps_of(steps))
            for number, steps in newest_timings(cluster, CHART_SESSIONS)
        ]

    def twin() -> Twin:
        rows = series()
        steps = sorted({step for row in rows for step in row.steps})
        return Twin(
            f"timings-{cluster.slug}",
            [_("session"), *(timings_figure.step_word(step) for step in steps)],
            [(row.number, *(row.steps.get(step) for step in steps)) for row in rows],
        )

    key = f"timings:{cluster.pk}:{cluster.session_id}"  # type: ignore[attr-defined]
    return answer(this.request, key=key, figure=lambda theme: timings_figure.figure(series(), theme), twin=twin)


def _guard(this: Page, number: int) -> SendingStop | None:
    stop = sending_stop(this.cluster)
    return stop if stop is not None and stop.code is Hold.GUARD and stop.session == number else None


@page(section="sessions", topics="sessions")
def session(this: Page, number: int) -> HttpResponse:
    found = session_by_number(this.access, this.cluster, number)
    if found is None:
        raise Http404
    steps = steps_of(found.timings_ms)
    longest = max(steps.values(), default=0)
    parts = steps_of(found.timings_ms, parts=True)
    decisions = paged(
        visible_decisions(this.access, found), ("id",), this.request.GET.get("cursor", ""), size=DECISIONS
    )
    held = hold_words.HOLDS.get(str(found.counts.get("held", "")), "")
    return this.render(
        "sessions/session.html",
        {
            "session": found,
            # An error may name gangs of all tenants.
            "error": found.error if this.access.everything else "",
            "total_ms": total_ms(found),
            "steps": [
                (step, value, bars.amount_bar("plain", value, longest, f"{step}: {amounts.duration(value / 1000)}"))
                for step, value in ((timings_figure.step_word(name), value) for name, value in steps.items())
            ],
            "parts": [(step.removeprefix(PARTS), value) for step, value in parts.items()],
            "held": held,
            "guard": _guard(this, number),
            "first_unsent": first_unsent(this.cluster, found.pk) if held and not decisions.rows else None,
            "page": decisions,
            "reclaims": session_reclaims(this.access, found),
            "waited": _waited(this, found),
            "most_waited": WAITED,
        },
    )


def _waited(this: Page, found: Session) -> list[dict[str, Any]]:
    gangs = waited_then(
        this.access, this.cluster, session_id=found.pk, now=found.now, started_at=found.started_at, rows=WAITED
    )
    lines = []
    for gang in gangs:
        step: dict[str, Any] = gang.step  # type: ignore[attr-defined]  # annotated, as is own_queue
        detail = step["detail"]
        own: bool = gang.own_queue  # type: ignore[attr-defined]
        numbers = reason_words.own_numbers(this.access, detail.get("numbers")) if own else {}
        said = reason_words.reason_detail(detail["code"], detail.get("message", ""))
        title, since = reason_words.reason_title(detail["code"]), dt.datetime.fromisoformat(step["at"])
        # What was written down are the figures of the session in which the reason began.
        why = said or (reason_words.reason_sentence(detail["code"], numbers) if since >= found.now else title)
        lines.append({"gang": gang, "title": title, "why": why, "since": since})
    return lines
