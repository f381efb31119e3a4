"""Level-triggered: each sweep looks at what the timelines of the named gangs say by now. It may run twice."""

import datetime as dt
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from tidesched_web.changes import forecast_selectors as selectors
from tidesched_web.changes import forecasts
from tidesched_web.changes.impact_sight import as_now
from tidesched_web.changes.models import ChangeForecast, ForecastState, QuotaChange
from tidesched_web.changes.reach import Written
from tidesched_web.changes.services.recording import about_change
from tidesched_web.common import live
from tidesched_web.workloads.models import GangState

# "At once" is until the fourth session begins after the change has reached its cluster (the first decides, another one
# may be needed where a controller makes pods meanwhile), and not less than the time that the cluster needs for that.
SESSIONS = 3
LEAST = dt.timedelta(seconds=30)
# Where fewer sessions run (the cluster is paused, or away) it is judged after so long.
LONGEST = dt.timedelta(minutes=30)
# A forecast that was older when its change was written does not count.
FRESH = dt.timedelta(minutes=10)


def follow() -> int:
    now = timezone.now()
    for change in selectors.changes_to_follow(now):
        _begin(change)
    followed = selectors.open_forecasts()
    since: dict[int, dt.datetime] = {}
    for forecast in followed:
        written = forecast.change.committed_at or now
        since[forecast.cluster_id] = min(written, since.get(forecast.cluster_id, written))
    later = {cluster_id: selectors.written_after(cluster_id, at) for cluster_id, at in since.items()}
    return sum(_compare(forecast, now, later[forecast.cluster_id]) for forecast in followed)


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


def _compare(forecast: ChangeForecast, now: dt.datetime, later: list[Written]) -> bool:
    change = forecast.change
    since, arrived = change.committed_at or now, change.applied_at or now
    starts = selectors.sessions_after(forecast.cluster_id, arrived, SESSIONS + 1)
    until = max(arrived + LEAST, starts[SESSIONS]) if len(starts) > SESSIONS else arrived + LONGEST
    over = now >= until
    rows = [dict(row) for row in forecast.rows]
    waits = {row["gang"] for row in rows if row["outcome"] == forecasts.OPEN}
    points = selectors.points_since(forecast.cluster_id, waits, since)
    numbers = selectors.session_numbers(point["session"] or 0 for found in points.values() for point in found)
    for row in rows:
        if row["outcome"] == forecasts.OPEN:
            _look(row, points.get(row["gang"], []), numbers, until)
    _look_at_pods(
        [row for row in rows if row["outcome"] == forecasts.OPEN and row["expects"] == forecasts.GROW], forecast, until
    )
    if over:
        _end(forecast, rows, seen=bool(starts))
    _overtake(forecast, rows, [written for written in later if since < written.at <= until])
    done = over or all(row["outcome"] == forecasts.OVERTAKEN for row in rows)
    sessions = len(starts)
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


def _look(row: dict[str, Any], points: list[dict[str, Any]], numbers: dict[int, int], until: dt.datetime) -> None:
    loses = row["expects"] == forecasts.LOSE
    for point in points:
        if point["kind"] in forecasts.FULFILLED_BY[row["was" if loses else "expects"]]:
            row |= {
                "outcome": forecasts.HELD if (point["at"] <= until) != loses else forecasts.MISSED,
                "session": numbers.get(point["session"] or 0),
                "at": point["at"].isoformat(),
            }
            return


def _look_at_pods(rows: list[dict[str, Any]], forecast: ChangeForecast, until: dt.datetime) -> None:
    if not rows:
        return
    gangs = selectors.newest_gangs(forecast.cluster_id, {row["gang"] for row in rows})
    newest = selectors.newest_session(forecast.cluster_id)
    for row in rows:
        gang = gangs.get(row["gang"])
        if newest is not None and gang is not None and gang.gone_at is None and gang.bound >= row["pods"]:
            held = newest.started_at <= until
            row |= {
                "outcome": forecasts.HELD if held else forecasts.MISSED,
                "session": newest.number,
                "at": newest.started_at.isoformat(),
            }


def _end(forecast: ChangeForecast, rows: list[dict[str, Any]], *, seen: bool) -> None:
    left = [row for row in rows if row["outcome"] == forecasts.OPEN]
    gangs = selectors.newest_gangs(forecast.cluster_id, {row["gang"] for row in left}) if left else {}
    newest = selectors.newest_session(forecast.cluster_id) if left else None
    for row in left:
        gang = gangs.get(row["gang"])
        if not seen:
            row["outcome"] = forecasts.OVERTAKEN
        elif gang is None or gang.gone_at is not None:
            row["outcome"] = forecasts.GONE
        elif row["expects"] not in ("reclaimed", forecasts.GROW) and gang.state == GangState.RUNNING:
            row["outcome"] = forecasts.OVERTAKEN  # it ran before the change was written: without it
        else:
            has = "promised" if gang.reason_code == "WaitingForReclaim" else "admitted"
            # A place that it had before the change was written: no point of its timeline says so since.
            keeps = gang.state == GangState.ADMITTED and row.get("was") in ("admitted", has)
            lost = row["expects"] == forecasts.LOSE and not keeps
            row["outcome"] = forecasts.HELD if lost else forecasts.MISSED
            if lost and newest is not None:
                row |= {"session": newest.number, "at": newest.started_at.isoformat()}
            if gang.needs:
                row["why"] = {"code": gang.reason_code, "numbers": gang.reason_numbers, "message": gang.reason_message}


def _overtake(forecast: ChangeForecast, rows: list[dict[str, Any]], later: list[Written]) -> None:
    """Were only those left out that did not come, a busy cluster's forecasts would all have held."""
    rows = [row for row in rows if row["outcome"] in (forecasts.OPEN, forecasts.HELD, forecasts.MISSED)]
    if not rows or not later:
        return
    above = selectors.ceilings_of(forecast.cluster_id, {row["queue"] for row in rows})
    for row in rows:
        reached = {"queue": row["queue"], "ceilings": above.get(row["queue"], ()), "cards": row.get("cards", ())}
        other = next((written for written in later if written.reach.touches(**reached)), None)
        if other is not None:
            row["outcome"] = forecasts.OVERTAKEN
            row["why"] = {"code": "", "numbers": {"change": other.change}, "message": ""}
