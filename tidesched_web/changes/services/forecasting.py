"""Following what a change was expected to do: the sessions after it are compared with its impact.

Level-triggered: each sweep looks at what the timelines of the named gangs say by now. It may run twice.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from tidesched_web.changes import forecast_selectors as selectors
from tidesched_web.changes import forecasts
from tidesched_web.changes.impact_sight import as_now
from tidesched_web.changes.models import ChangeForecast, ForecastState, QuotaChange
from tidesched_web.changes.services.recording import about_change
from tidesched_web.common import live
from tidesched_web.workloads.models import GangState

# What has not come after so many sessions and so long is missed.
SESSIONS = 10
LEAST = dt.timedelta(seconds=30)
# Where no sessions run (the cluster is paused, or away) nothing can be said after so long.
LONGEST = dt.timedelta(minutes=30)
# A forecast that was older when its change was written does not count.
FRESH = dt.timedelta(minutes=10)


def follow() -> int:
    """Begin to follow changes that have reached their cluster, and compare those that are followed; how many ended."""
    now = timezone.now()
    for change in selectors.changes_to_follow(now):
        _begin(change)
    return sum(_compare(forecast, now) for forecast in selectors.open_forecasts())


def _begin(change: QuotaChange) -> None:
    impact = as_now((change.plan or {}).get("impact") or {})
    rows = [] if impact.get("unavailable") else forecasts.rows_of(impact)
    made_at = parse_datetime(impact.get("at") or "")
    written = change.committed_at
    fresh = made_at is not None and written is not None and written - made_at <= FRESH
    ChangeForecast.objects.get_or_create(
        change=change,
        defaults={
            "cluster_id": change.cluster_id,
            "state": ForecastState.FOLLOWING if rows else ForecastState.VOID,
            "made_in": impact.get("session"),
            "made_at": made_at,
            "rows": rows,
            "counted": fresh,
        },
    )


def _compare(forecast: ChangeForecast, now: dt.datetime) -> bool:
    change = forecast.change
    since = change.committed_at or now
    arrived = change.applied_at or now
    rows = [dict(row) for row in forecast.rows]
    waits = {row["gang"] for row in rows if row["outcome"] == forecasts.OPEN}
    sessions = selectors.sent_sessions(forecast.cluster_id, arrived)
    points = selectors.points_since(forecast.cluster_id, waits, since)
    numbers = selectors.session_numbers(point["session"] or 0 for found in points.values() for point in found)
    for row in rows:
        if row["outcome"] == forecasts.OPEN:
            _look(row, points.get(row["gang"], []), numbers)
    over = now - arrived >= LONGEST or (sessions >= SESSIONS and now - arrived >= LEAST)
    if over:
        _end(forecast, rows, sessions)
    done = all(row["outcome"] != forecasts.OPEN for row in rows)
    if rows != forecast.rows or sessions != forecast.sessions or done:
        ChangeForecast.objects.filter(pk=forecast.pk, state=ForecastState.FOLLOWING).update(
            rows=rows,
            sessions=sessions,
            counts=forecasts.counts_of(rows) if done else {},
            state=ForecastState.DONE if done else ForecastState.FOLLOWING,
            compared_at=now,
        )
        if rows != forecast.rows or done:
            version = f"{change.version}.{sessions}"
            about = about_change(change, "forecast")
            live.publish("changes", change.pk, version, cluster_id=forecast.cluster_id, about=about)
    return done


def _look(row: dict[str, Any], points: list[dict[str, Any]], numbers: dict[int, int]) -> None:
    """Hold what has come: the first point of the gang's timeline that fulfils what was expected."""
    for point in points:
        if point["kind"] in forecasts.FULFILLED_BY[row["expects"]]:
            row |= {
                "outcome": forecasts.HELD,
                "session": numbers.get(point["session"] or 0),
                "at": point["at"].isoformat(),
            }
            return


def _end(forecast: ChangeForecast, rows: list[dict[str, Any]], sessions: int) -> None:
    """What has not come by now is missed, and why; where another change came between, or no session ran, it is open."""
    left = [row for row in rows if row["outcome"] == forecasts.OPEN]
    if not left:
        return
    gangs = selectors.newest_gangs(forecast.cluster_id, {row["gang"] for row in left})
    overtaken = selectors.written_since(forecast.change)
    for row in left:
        gang = gangs.get(row["gang"])
        if overtaken is not None or sessions < SESSIONS:
            row["outcome"] = forecasts.OVERTAKEN
            row["why"] = {"code": "", "numbers": {"change": overtaken}, "message": ""} if overtaken else None
        elif gang is None or gang.gone_at is not None:
            row["outcome"] = forecasts.GONE
        elif row["expects"] != "reclaimed" and gang.state == GangState.RUNNING:
            row["outcome"] = forecasts.HELD  # it ran before the timeline was asked
        else:
            row["outcome"] = forecasts.MISSED
            if gang.needs:
                row["why"] = {
                    "code": gang.reason_code,
                    "numbers": gang.reason_numbers,
                    "message": gang.reason_message,
                }
