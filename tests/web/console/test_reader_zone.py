"""All times of a page are in the reader's zone, which is written beside them: columns, filters, charts, the clock."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
import zoneinfo

import pytest
from django.utils import timezone

from tests.web.console.test_pages import client_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import reader_zone
from tidesched_web.scheduling.models import Reclaim

pytestmark = pytest.mark.django_db
RECLAIMS = "/clusters/demo/reclaims/"
THERE = zoneinfo.ZoneInfo("Asia/Shanghai")


@pytest.fixture
def reader(world):
    """In Shanghai, of an installation whose cluster is in UTC."""
    world.admin.time_zone = "Asia/Shanghai"
    world.admin.save()
    return client_of(world.admin)


def test_the_rows_between_two_typed_times_are_those_whose_shown_times_are_between_them(world, reader) -> None:
    """By the cluster's clock; at the same hour of UTC there is another row, which is not meant."""
    noon = dt.datetime(2026, 3, 4, 3, 15, tzinfo=THERE)
    meant, other = world.reclaims[:2]
    Reclaim.objects.exclude(pk__in=(meant.pk, other.pk)).update(at=noon - dt.timedelta(days=9))
    Reclaim.objects.filter(pk=meant.pk).update(at=noon)
    Reclaim.objects.filter(pk=other.pk).update(at=noon.replace(tzinfo=dt.UTC))
    asked = "?from=2026-03-04T03:00&to=2026-03-04T03:30"
    page = reader.get(RECLAIMS + asked).content.decode()
    listed = re.findall(
        r'<time class="num nowrap" datetime="([^"]+)" title="([^"]+)"><span class="year">(.*?)</time>', page
    )
    assert [(text.replace("</span>", ""), title) for _at, title, text in listed] == [
        ("2026-03-04 03:15", "2026-03-04 03:15:00 UTC+8 by the cluster&#x27;s clock")
    ]
    rows = csv.DictReader(io.StringIO(reader.get(f"{RECLAIMS}{asked}&format=csv").content.decode("utf-8-sig")))
    assert [int(row["id"]) for row in rows] == [meant.pk]
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "From (UTC+8): 2026-03-04 03:00" in words, "the chip"
    assert "To (UTC+8)" in words
    assert re.search(r'<th scope="col" class="num col-when">When <span class="text-secondary">UTC\+8</span>', page)


def test_the_clock_in_the_head_is_in_the_zone_of_the_times_below_it(world, reader) -> None:
    page = reader.get(RECLAIMS).content.decode()
    clock = re.search(r'id="cluster-clock" datetime="([^"]+)"[^>]*>([^<]+)</time> <span class="zone">([^<]+)<', page)
    assert clock is not None
    there = dt.datetime.fromisoformat(clock[1]).astimezone(THERE)
    assert (clock[2], clock[3]) == (there.strftime("%Y-%m-%d %H:%M"), "UTC+8")


def test_a_simulated_cluster_says_so_beside_its_clock_with_its_factor(world, reader) -> None:
    def chip() -> str:
        page = reader.get("/clusters/demo/nodes/").content.decode()
        found = re.search(r'<span\s+class="state tone-quiet rate"[^>]*>(.*?)</span>', page, re.DOTALL)
        return " ".join(found[1].split()) if found else ""

    for simulated, rate, said in ((True, 144.0, "simulated ×144"), (True, 1.0, "simulated"), (False, 1.0, "")):
        Cluster.objects.filter(pk=world.cluster.pk).update(simulated=simulated, clock_rate=rate)
        assert chip() == said


@pytest.mark.parametrize("address", ["tide/", "reclaims/taken/", "queues/search-training/usage/?card=NVIDIA-H200"])
def test_the_axis_and_the_table_of_a_chart_name_the_zone(world, reader, address) -> None:
    path = f"/clusters/demo/{address}"
    drawn = reader.get(path).json()
    if drawn["data"]:
        assert drawn["layout"]["xaxis"]["title"]["text"] == "UTC+8"
    table = reader.get(f"{path}{'&' if '?' in path else '?'}format=csv").content.decode("utf-8-sig")
    assert "(UTC+8)" in table.splitlines()[0]


@pytest.mark.parametrize("address", ["sessions/", "gangs/"])
def test_columns_of_moments_name_the_zone(world, reader, address) -> None:
    page = reader.get(f"/clusters/demo/{address}").content.decode()
    assert '<span class="text-secondary">UTC+8</span>' in page


def test_a_time_says_its_zone_where_summer_time_makes_it_another_than_that_of_the_head() -> None:
    with timezone.override(zoneinfo.ZoneInfo("Europe/Berlin")):
        offsets = {reader_zone.other_zone(dt.datetime(2026, month, 4, 12, tzinfo=dt.UTC)) for month in (1, 7)}
    assert offsets in ({"", " UTC+1"}, {"", " UTC+2"})
    with timezone.override(zoneinfo.ZoneInfo("America/St_Johns")):
        assert reader_zone.zone_name(dt.datetime(2026, 1, 4, tzinfo=dt.UTC)) == "UTC-3:30"
