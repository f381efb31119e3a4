"""The figures of the overview, recomputed from the points in plain loops."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

import pytest
from django.db import connection
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.console import tide_figures as console_figures
from tidesched_web.scheduling.models import TidePoint
from tidesched_web.scheduling.selectors import tide_points
from tidesched_web.scheduling.tide_figures_selectors import Figures, Moment, tide_figures

pytestmark = pytest.mark.django_db
# How many of each make a card of the story.
PARTS = {story.MIG: 7, story.MPS: 2}


def recomputed(cluster, at: dt.datetime) -> dict[str, Fraction]:
    newest: dict[str, TidePoint] = {}
    for point in TidePoint.objects.filter(cluster=cluster).order_by("at", "id"):
        if point.at <= at:
            newest[point.card] = point
    sums = dict.fromkeys(("total", "used", "idle_wanted", "waiting", "lent"), Fraction(0))
    for card, point in newest.items():
        milli = 1000 * PARTS.get(card, 1)
        sums["total"] += Fraction(point.total, milli)
        sums["used"] += Fraction(point.inference + point.training + point.foreign, milli)
        sums["idle_wanted"] += Fraction(min(point.idle, point.waiting), milli)
        sums["waiting"] += Fraction(point.waiting, milli)
        sums["lent"] += Fraction(point.borrowed, milli)
    return sums


def test_a_members_tile_does_not_say_that_their_gangs_wait_for_the_cards_of_all(world) -> None:
    own = " ".join(client_of(world.member).get("/clusters/demo/").content.decode().split())
    assert "Your gangs that wait" in own
    assert re.search(r"the gangs of all tenants wait for [\d,]+ physical cards", own)
    whole = " ".join(client_of(world.auditor).get("/clusters/demo/").content.decode().split())
    assert "Your gangs that wait" not in whole
    assert re.search(r"\bfor [\d,]+ physical cards", whole)


def test_the_figures_are_those_of_the_points_in_one_query(world) -> None:
    cluster = world.cluster
    now = cluster.clock()
    with CaptureQueriesContext(connection) as queries:
        found = tide_figures(cluster)
    assert len(queries) == 1
    for moment, at in ((found.now, now), (found.earlier, now - dt.timedelta(days=1))):
        assert moment is not None
        for name, value in recomputed(cluster, at).items():
            assert getattr(moment, name) == pytest.approx(float(value)), name
    newest = TidePoint.objects.filter(cluster=cluster).order_by("card", "-at", "-id").distinct("card")
    newest = sorted(newest, key=lambda point: (-point.total, point.card))
    assert [model_to_dict(point) for point in found.points] == [model_to_dict(point) for point in newest]
    assert len(found.inference) in (48, 49)
    turn = found.turn()
    assert turn is not None
    flood, when = turn
    assert now < when <= now + dt.timedelta(days=1)
    yesterday = dict(found.inference)
    there = yesterday[when - dt.timedelta(days=1)]
    around = [value for at, value in found.inference if abs(at + dt.timedelta(days=1) - when) <= dt.timedelta(hours=1)]
    assert there == (max if flood else min)(around)


def points_read(plan: dict) -> float:
    """How many rows of the tide the steps of a plan read."""
    own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    below = sum(points_read(part) for part in plan.get("Plans", ()))
    return below + (own if plan.get("Relation Name") == TidePoint._meta.db_table else 0)


@pytest.mark.parametrize("asked", [tide_figures, lambda cluster: tide_points(cluster, cluster.clock())])
def test_months_of_points_are_not_read_for_the_newest_of_each_card(world, asked) -> None:
    now = world.cluster.clock()
    old = dict.fromkeys(("total", "inference", "training", "borrowed", "foreign", "idle", "waiting"), 0)
    TidePoint.objects.bulk_create(
        TidePoint(cluster=world.cluster, card=f"card-{card}", at=at, wall_at=at, **old)
        for card in range(20)
        for at in (now - dt.timedelta(days=2, hours=hour) for hour in range(1000))
    )
    with CaptureQueriesContext(connection) as queries:
        asked(world.cluster)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE scheduling_tidepoint")
        for query in queries:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query["sql"])
            assert points_read(cursor.fetchone()[0][0]["Plan"]) < 1000


def test_the_highest_and_the_lowest_use_of_a_card_type_in_a_day(world) -> None:
    now = world.cluster.clock()
    day = tide_figures(world.cluster).day
    points = TidePoint.objects.filter(cluster=world.cluster, at__gt=now - dt.timedelta(days=1), at__lte=now)
    cards = set(points.values_list("card", flat=True))
    assert set(day) == cards
    for card in cards:
        used = {point.at: point.total - point.idle for point in points.filter(card=card)}
        found = day[card]
        assert (found.high, found.low) == (max(used.values()), min(used.values()))
        for at, amount in ((found.high_at, found.high), (found.low_at, found.low)):
            assert amount in [used[one] for one in used if at <= one < at + dt.timedelta(minutes=30)]
    card = min(cards)
    page = " ".join(client_of(world.member).get("/clusters/demo/").content.decode().split())
    assert page.count("In use in the last 24 h: least and most") == len(cards)
    said = rf"\) to <strong class=\"num\">{day[card].high / 1000:g}</strong> \({day[card].high_at:%H:%M}\)"
    assert re.search(said, page)


def day_of(*values: float) -> Figures:
    """Half hours of a day that ended at noon, on a hundred cards."""
    noon = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
    steps = [(noon - dt.timedelta(minutes=30 * (len(values) - place)), value) for place, value in enumerate(values)]
    return Figures(Moment(100, 0, 0, 0, 0), None, steps)


def test_the_last_peak_is_the_newest_one_that_was_over() -> None:
    low, high = [20.0] * 10, [60.0] * 10
    two_peaks = day_of(*low, *high, 70, *low, 50, *[30.0] * 10)
    assert two_peaks.last_peak() == two_peaks.inference[31]
    # What rises still is no peak: the one before it is.
    rising = day_of(*low, *high, 70, *low, *[55.0] * 17)
    assert rising.last_peak() == rising.inference[20]
    # Half a peak at the beginning is the highest that the day had.
    falling = day_of(*[50.0] * 20, *[20.0] * 28)
    assert falling.last_peak() == falling.inference[0]
    assert day_of(*[50.0] * 48).last_peak() is None, "an even day has no tide"
    assert day_of(*low, *high).last_peak() is None, "too little of the day is known"


def test_the_overview_says_when_inference_last_peaked_and_how_high(world) -> None:
    at, height = tide_figures(world.cluster).last_peak()
    total = round(tide_figures(world.cluster).now.total)
    said = f"about {round(height)} of {total} physical cards, at {timezone.localtime(at):%Y-%m-%d %H:%M} UTC."
    for user in (world.auditor, world.member):
        assert f"Last peak of inference: {said}" in client_of(user).get("/clusters/demo/").content.decode()


def test_the_overview_shows_them_with_their_trend_and_says_where_the_tide_is(world) -> None:
    found = tide_figures(world.cluster)
    page = client_of(world.admin).get("/clusters/demo/").content.decode()
    assert 4 <= page.count('<dd class="big">') <= 6
    assert f"{round(found.now.utilisation)} %" in page
    assert re.search(r"since yesterday|as yesterday", page)
    assert re.search(r"The tide (comes in|goes out)", page)
    empty = client_of(world.admin).get("/clusters/").content.decode()
    assert "overview-figures" not in empty


def test_an_even_day_and_a_short_one_have_no_turn() -> None:
    start = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    moment = Moment(total=100, used=50, idle_wanted=0, waiting=0, lent=0)
    even = [(start + dt.timedelta(minutes=30 * n), 50.0 + n % 2) for n in range(48)]
    tidal = [(at, float(n)) for n, (at, _value) in enumerate(even)]
    assert Figures(moment, None, even).turn() is None
    assert Figures(moment, None, tidal[:20]).turn() is None
    at_its_end = start + dt.timedelta(days=1, minutes=30 * 47)
    assert Figures(moment, None, tidal).turn() == (True, at_its_end), "not the low of this very moment"
    assert Figures(None, None, tidal).turn() is None


def test_the_next_turn_is_the_nearest_one_and_not_the_highest_of_the_day() -> None:
    """Seen from the dip at noon inference rises for hours, though its lowest hour is at night."""
    start = dt.datetime(2026, 3, 2, 13, tzinfo=dt.UTC)
    moment = Moment(total=100, used=50, idle_wanted=0, waiting=0, lent=0)
    by_hour = [60, 61, 64, 70, 78, 84, 88, 90, 86, 70, 50, 30, 20, 15, 12, 10, 12, 20, 35, 55, 75, 88, 90, 75]
    day = [(start + dt.timedelta(minutes=30 * n), float(by_hour[n // 2])) for n in range(48)]

    def turn(first: int) -> tuple[bool, dt.timedelta]:
        again = [(at + dt.timedelta(days=1), value) for at, value in day[:first]]
        found = Figures(moment, None, [*day[first:], *again]).turn()
        assert found is not None
        return found[0], found[1] - day[first][0] - dt.timedelta(days=1)

    assert turn(0) == (True, dt.timedelta(hours=7)), "the evening's peak, not the night's low"
    assert turn(16) == (False, dt.timedelta(hours=7))
    assert turn(32) == (True, dt.timedelta(hours=6))
    assert turn(44) == (False, dt.timedelta(hours=2))


def test_the_head_of_each_page_has_the_clusters_clock_in_the_readers_zone(world) -> None:
    """As all times of the page; the cluster's own zone is said on hover."""
    client = client_of(world.admin)
    assert 'id="cluster-clock"' in client.get("/clusters/demo/gangs/").content.decode()
    assert 'data-zone="UTC"' in client.get("/clusters/demo/gangs/").content.decode()
    layer = {"days": ["mon"], "start": "01:00", "end": "02:00", "quota": {"search-training": {story.H200: {"add": 0}}}}
    plan = {"enabled": True, "time_zone": "Asia/Shanghai", "layers": [layer]}
    write_tide_plan(cluster=world.cluster, name="zone", document=plan, actor="tests")
    page = client.get("/clusters/demo/gangs/").content.decode()
    assert 'data-zone="UTC"' in page
    assert "the cluster&#x27;s own is Asia/Shanghai" in page
    world.admin.time_zone = "Asia/Shanghai"
    world.admin.save()
    page = client.get("/clusters/demo/gangs/").content.decode()
    assert 'data-zone="Asia/Shanghai"' in page
    shown = re.search(r'id="cluster-clock" datetime="([^"]+)"[^>]*>([^<]+)<', page)
    there = dt.datetime.fromisoformat(shown[1]).astimezone(dt.timezone(dt.timedelta(hours=8)))
    assert shown[2] == there.strftime("%Y-%m-%d %H:%M")


def test_a_clusters_own_zone_is_said_at_its_clock_and_rules_where_a_new_plan_begins(world) -> None:
    """Before the zone of any plan; set on the cluster's page."""
    layer = {"days": ["mon"], "start": "01:00", "end": "02:00", "quota": {"search-training": {story.H200: {"add": 0}}}}
    plan = {"enabled": True, "time_zone": "Asia/Shanghai", "layers": [layer]}
    write_tide_plan(cluster=world.cluster, name="zone", document=plan, actor="tests")
    client = client_of(world.admin)
    form = client.get("/clusters/demo/settings/")
    assert form.status_code == 200, form.status_code
    given = {name: value for name, value in form.context["form"].initial.items() if value is not None}
    saved = client.post("/clusters/demo/settings/", given | {"time_zone": "Asia/Kolkata", "reason": "moved"})
    assert saved.status_code == 302, saved.context["form"].errors
    page = client.get("/clusters/demo/reclaims/").content.decode()
    assert "the cluster&#x27;s own is Asia/Kolkata" in page
    assert re.search(r'title="[^"]* UTC by the cluster', page), "times by the cluster's clock are in the reader's zone"
    editor = client.get("/clusters/demo/new/tide-plan/").content.decode()
    assert 'id="time_zone" name="time_zone" value="Asia/Kolkata"' in " ".join(editor.split())
    wrong = client.post("/clusters/demo/settings/", given | {"time_zone": "Mars/Base", "reason": "moved"})
    assert wrong.status_code == 400


def test_a_difference_of_percentages_is_in_points(world) -> None:
    now = world.cluster.clock()
    then, there = (Moment(total=100, used=used, idle_wanted=0, waiting=0, lent=0) for used in (60, 72))
    shown = console_figures.shown(Figures(there, then, [], []), gangs=0, reclaims=[], now=now)
    assert (shown[0].value, shown[0].trend) == ("72 %", "+12 points since yesterday")
    then, there = (Moment(total=100, used=used, idle_wanted=0, waiting=used, lent=0) for used in (72, 71))
    shown = console_figures.shown(Figures(there, then, [], []), gangs=0, reclaims=[], now=now, whole=True)
    assert [figure.trend for figure in (shown[0], shown[2])] == ["−1 point since yesterday", "−1 card since yesterday"]
