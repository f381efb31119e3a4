"""The figures of the overview, recomputed from the points in plain loops."""

from __future__ import annotations

import datetime as dt
import math
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
from tidesched_web.clusters.models import Cluster
from tidesched_web.console import tide_figures as console_figures
from tidesched_web.engine import demo
from tidesched_web.scheduling.models import TidePoint
from tidesched_web.scheduling.selectors import tide_points
from tidesched_web.scheduling.tide_figures_selectors import STEP, Figures, Moment, tide_figures

pytestmark = pytest.mark.django_db
# How many of each make a card of the story.
PARTS = {story.MIG: 7, story.MPS: 2}
CARDS = (story.H200, story.A100, story.L40S, story.RTX, story.MIG, story.MPS)


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
    # Two days were seen: each half hour ahead is the mean of both.
    ahead, means = found.curve[7]
    both = [
        sum(average(world.cluster, card, ahead - dt.timedelta(days=back)) / PARTS.get(card, 1) for card in CARDS)
        for back in (1, 2)
    ]
    assert means == pytest.approx(sum(both) / 2 / 1000)
    turns = found.turns()
    assert set(turns) == {True, False}
    values = dict(found.curve)
    for peak, when in turns.items():
        assert now <= when <= now + dt.timedelta(days=1)
        around = [value for at, value in found.curve if abs(at - when) <= dt.timedelta(hours=1)]
        assert values[when] == (max if peak else min)(around)


def average(cluster, card: str, start: dt.datetime) -> float:
    points = TidePoint.objects.filter(cluster=cluster, card=card, at__gte=start, at__lt=start + STEP)
    return sum(point.inference for point in points) / len(points)


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
        for at in (now - dt.timedelta(days=3, hours=hour) for hour in range(1000))
    )
    with CaptureQueriesContext(connection) as queries:
        asked(world.cluster)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE scheduling_tidepoint")
        for query in queries:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query["sql"])
            assert points_read(cursor.fetchone()[0][0]["Plan"]) < 2000


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


def test_the_overview_shows_them_with_their_trend_and_says_where_the_tide_is(world) -> None:
    found = tide_figures(world.cluster)
    page = client_of(world.admin).get("/clusters/demo/").content.decode()
    assert 4 <= page.count('<dd class="big">') <= 6
    assert f"{round(found.now.utilisation)} %" in page
    assert re.search(r"since yesterday|as yesterday", page)
    turns = r"its next (peak|low) is in"
    assert re.search(rf"Inference (rises|falls|is steady) · {turns} .+ · {turns}", page)
    empty = client_of(world.admin).get("/clusters/").content.decode()
    assert "overview-figures" not in empty


def test_an_even_day_and_one_that_was_not_seen_have_no_turn() -> None:
    start = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    moment = Moment(total=100, used=50, idle_wanted=0, waiting=0, lent=0)
    even = [(start + dt.timedelta(minutes=30 * n), 50.0 + n % 2) for n in range(48)]
    tidal = [(at, float(n)) for n, (at, _value) in enumerate(even)]
    assert Figures(moment, None, curve=even).turns() == {}
    assert Figures(moment, None, curve=[]).turns() == {}
    peak, low = start + dt.timedelta(minutes=30 * 47), start + dt.timedelta(days=1)
    assert Figures(moment, None, curve=tidal).turns() == {True: peak, False: low}, "not the low of this very moment"
    assert Figures(None, None, curve=tidal).turns() == {}


def test_the_next_turn_is_the_nearest_one_and_not_the_highest_of_the_day() -> None:
    """Seen from the dip at noon inference rises for hours, though its lowest hour is at night."""
    start = dt.datetime(2026, 3, 2, 13, tzinfo=dt.UTC)
    moment = Moment(total=100, used=50, idle_wanted=0, waiting=0, lent=0)
    by_hour = [60, 61, 64, 70, 78, 84, 88, 90, 86, 70, 50, 30, 20, 15, 12, 10, 12, 20, 35, 55, 75, 88, 90, 75]
    day = [(start + dt.timedelta(minutes=30 * n), float(by_hour[n // 2])) for n in range(48)]

    def turns(first: int) -> dict[bool, dt.timedelta]:
        again = [(at + dt.timedelta(days=1), value) for at, value in day[:first]]
        found = Figures(moment, None, curve=[*day[first:], *again]).turns()
        return {peak: at - day[first][0] for peak, at in found.items()}

    assert turns(0) == {True: dt.timedelta(hours=7), False: dt.timedelta(hours=15)}
    assert turns(16)[False] == dt.timedelta(hours=7)
    assert turns(32)[True] == dt.timedelta(hours=6)
    assert turns(44)[False] == dt.timedelta(hours=2), "the dip at noon"


@pytest.fixture
def fresh(world) -> story.World:
    """A cluster of one card type with no point of the tide yet."""
    TidePoint.objects.all().delete()
    return world


def measured(world, ago: dt.timedelta, inference: int, *, training: int = 100, borrowed: int = 0, now=None) -> None:
    at = (now or world.cluster.clock()) - ago
    TidePoint.objects.create(
        cluster=world.cluster, card=story.H200, at=at, wall_at=at, total=500_000, inference=1000 * inference,
        training=1000 * training, borrowed=1000 * borrowed, foreign=0, idle=1000 * (500 - inference - training),
        waiting=0, quota=300_000,
    )  # fmt: skip


def overview_of(world) -> str:
    return " ".join(client_of(world.admin).get("/clusters/demo/").content.decode().split())


def test_where_inference_goes_is_told_by_what_was_measured_in_the_last_hour(fresh) -> None:
    """Yesterday and the day before it went out at this hour; now it climbs from 54 to 310."""
    now = fresh.cluster.clock()
    for step in range(1, 5 * 48):
        ago = dt.timedelta(minutes=15 * step + 75)
        hour = ago / dt.timedelta(hours=1)
        measured(fresh, ago, round(150 + 90 * math.sin(2 * math.pi * hour / 24)), now=now)
    for step in range(13):
        measured(fresh, dt.timedelta(minutes=5 * (12 - step)), round(54 + (310 - 54) * step / 12), now=now)
    found = tide_figures(fresh.cluster)
    assert found.direction == 1
    assert found.turns()[False] < found.turns()[True], "the curve of the last days falls first"
    page = overview_of(fresh)
    assert "Inference rises" in page
    assert "Until inference peaks" in page
    assert "Inference falls" not in page
    TidePoint.objects.filter(at__gt=now - dt.timedelta(hours=1)).delete()
    for step in range(13):
        measured(fresh, dt.timedelta(minutes=5 * step), 150 + step % 3, now=now)
    assert tide_figures(fresh.cluster).direction == 0, "noise"
    TidePoint.objects.filter(at__gt=now - dt.timedelta(minutes=50)).delete()
    assert tide_figures(fresh.cluster).direction is None, "nothing was measured"


def test_a_card_type_whose_figure_did_not_move_is_no_rise(fresh) -> None:
    """Points are written where a figure moves, and for all card types now and then."""
    now = fresh.cluster.clock()
    for step in range(12):
        measured(fresh, dt.timedelta(minutes=5 * step), 100, now=now)
    measured(fresh, dt.timedelta(minutes=1), 300, now=now)
    TidePoint.objects.filter(inference=300_000).update(card=story.A100)
    found = tide_figures(fresh.cluster)
    assert found.rise == pytest.approx(0)
    assert found.direction == 0


def test_before_a_day_was_measured_nothing_is_compared_with_it(fresh) -> None:
    """Three hours after the first moment of a simulated cluster; what lies before it was drawn."""
    first = dt.datetime.fromtimestamp(demo.START, dt.UTC)
    wall = timezone.now()
    Cluster.objects.update(simulated=True, clock_anchor=first + dt.timedelta(hours=3), clock_wall_anchor=wall)
    fresh.cluster.refresh_from_db()
    now = first + dt.timedelta(hours=3)
    for step in range(4 * 72):
        measured(fresh, dt.timedelta(minutes=15 * step), 100 + step % 96, now=now)
    found = tide_figures(fresh.cluster)
    assert (found.earlier, found.turns(), found.day) == (None, {}, {})
    assert found.direction is not None
    page = overview_of(fresh)
    for words in ("yesterday", "its next peak", "its next low", "Until inference", "In 24 h", "Last peak"):
        assert words not in page, words
    # A day later the same is said of what was measured.
    Cluster.objects.update(clock_anchor=first + dt.timedelta(days=1, hours=1))
    fresh.cluster.refresh_from_db()
    for step in range(4 * 23):
        measured(fresh, dt.timedelta(minutes=15 * step), 100 + step, now=first + dt.timedelta(days=1, hours=1))
    found = tide_figures(fresh.cluster)
    assert found.earlier is not None
    assert found.turns()
    assert "since yesterday" in overview_of(fresh)


def test_hours_without_a_session_are_no_low(fresh) -> None:
    """Of three days one has a gap of six hours: the curve there is that of the other two."""
    now = fresh.cluster.clock()
    for step in range(1, 3 * 96):
        hours = step / 4
        if not 30 < hours <= 36:
            measured(fresh, dt.timedelta(hours=hours), 200 if hours % 24 < 12 else 100, now=now)
    curve = dict(tide_figures(fresh.cluster).curve)
    assert len(curve) in (48, 49)
    assert min(curve.values()) == pytest.approx(100)
    gap = [value for at, value in curve.items() if dt.timedelta(hours=12.5) < at - now < dt.timedelta(hours=17)]
    assert gap
    assert {round(value) for value in gap} == {200} or {round(value) for value in gap} == {100}


def test_the_least_and_the_most_of_a_day_are_not_at_one_time(fresh) -> None:
    now = fresh.cluster.clock().replace(second=30)
    for step in range(1, 96):
        measured(fresh, dt.timedelta(minutes=15 * step), 100, now=now)
    measured(fresh, dt.timedelta(hours=3, seconds=4), 0, now=now)
    measured(fresh, dt.timedelta(hours=3, seconds=2), 350, now=now)
    assert tide_figures(fresh.cluster).day == {}
    measured(fresh, dt.timedelta(hours=5), 0, training=0, now=now)
    day = tide_figures(fresh.cluster).day[story.H200]
    assert day.high_at - day.low_at >= dt.timedelta(hours=1)
    assert (day.low, day.high) == (0, 450_000)


def test_borrowed_is_a_part_of_training_and_a_row_adds_up_to_its_total(fresh) -> None:
    measured(fresh, dt.timedelta(0), 200, training=150, borrowed=40)
    page = overview_of(fresh)
    row = page.partition('data-label="Total"')[2].partition("</tr>")[0]
    cells = re.findall(r'data-label="(\w+)">(.*?)</td>', f'data-label="Total"{row}')
    said = {name: re.sub(r"<[^>]+>", " ", text).split() for name, text in cells}
    assert said["Training"] == ["150", "40", "borrowed"]
    assert "Borrowed" not in said
    parts = ("Inference", "Training", "Idle", "Foreign")
    assert sum(int(said[name][0]) for name in parts) == int(said["Total"][0]) == 500


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
    shown = console_figures.shown(Figures(there, then), gangs=0, reclaims=[], now=now)
    assert (shown[0].value, shown[0].trend) == ("72 %", "+12 points since yesterday")
    then, there = (Moment(total=100, used=used, idle_wanted=0, waiting=used, lent=0) for used in (72, 71))
    shown = console_figures.shown(Figures(there, then), gangs=0, reclaims=[], now=now, whole=True)
    assert [figure.trend for figure in (shown[0], shown[2])] == ["−1 point since yesterday", "−1 card since yesterday"]
