"""Filters, pages by cursor, exports, figures and fragments."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re

import pytest
from django.test import Client
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.cast import H200
from tests.web.console.test_pages import LISTS, client_of
from tidesched_web.accounts.models import User
from tidesched_web.clusters.models import CardType, Node
from tidesched_web.console import amounts, nodes
from tidesched_web.console.figures import palette, quota_map, reclaims
from tidesched_web.console.queues import QueueRow
from tidesched_web.quota.models import CardQuota, Queue
from tidesched_web.scheduling.models import QueueUsage

pytestmark = pytest.mark.django_db
BASE = "/clusters/demo/"
QUOTA_FIGURES = ("Base quota", "Quota in force", "In use", "Promised", "Cards of the cluster")


def names(page: str) -> list[str]:
    return re.findall(r'<a class="key" href="/clusters/demo/gangs/\d+/"><span class="cut" title="([^"]+)">', page)


def test_pages_by_cursor_show_each_row_once(world) -> None:
    client = client_of(world.admin)
    seen: list[str] = []
    path = f"{BASE}gangs/?service_type=training"
    while path:
        page = client.get(path).content.decode()
        seen += names(page)
        following = re.search(r'<a class="btn" href="(\?[^"]*cursor=[^"]+)">Next', page)
        path = f"{BASE}gangs/{following[1].replace('&amp;', '&')}" if following else ""
        if path:
            back = client.get(path).content.decode()
            previous = re.search(r'href="(\?[^"]*cursor=[^"]+)">Previous', back)
            assert previous is not None, (path, re.findall(r"<a class=.btn.*", back), names(back)[:3])
            first = client.get(f"{BASE}gangs/{previous[1].replace('&amp;', '&')}").content.decode()
            assert names(first) == seen[-len(names(first)) :]
    assert len(seen) == len(set(seen)) == sum(gang.service_type == "training" for gang in world.gangs.values())


def test_nodes_by_free_cards(world, monkeypatch) -> None:
    client = client_of(world.admin)
    monkeypatch.setattr(nodes, "ROWS", 3)
    mixed = Node.objects.filter(cards__has_key="NVIDIA-H200").earliest("name")
    Node.objects.filter(pk=mixed.pk).update(cards=mixed.cards | {"NVIDIA-L40S": 2})

    def rows(query: str, **more: str) -> list[tuple[str, float]]:
        text = client.get(f"{BASE}nodes/", {"format": "csv", "order": query} | more).content.decode("utf-8-sig")
        return [(row["node"], float(row["free_cards"])) for row in csv.DictReader(io.StringIO(text))]

    by_name = rows("")
    assert rows("free") == sorted(by_name, key=lambda row: (-row[1], row[0]))
    assert rows("busy") == sorted(by_name, key=lambda row: (row[1], row[0]))
    assert len({free for _name, free in by_name}) > 2
    # The page has the same order and the same figures, also of one card type alone, and goes on by cursor.
    for query, more in (("free", {}), ("busy", {"card": "NVIDIA-H200"})):
        shown, cursor = [], ""
        while cursor is not None:
            answer = client.get(f"{BASE}nodes/", {"order": query, "cursor": cursor} | more)
            shown += [
                (name, float(free.replace(",", "")))
                for name, free in re.findall(
                    r'<span class="key">([^<]+)</span></th>.*?data-label="Free cards"><span>([^<]+)</span>',
                    answer.content.decode(),
                    re.DOTALL,
                )
            ]
            cursor = answer.context["page"].next or None
        assert shown == rows(query, **more)
    assert dict(by_name)[mixed.name] == dict(rows("", card="NVIDIA-H200"))[mixed.name] + 2
    assert rows("nonsense") == by_name


def test_queues_that_are_starved_and_queues_by_the_part_of_their_quota_that_is_in_use(world) -> None:
    client = client_of(world.admin)

    def rows(**query: str) -> list[QueueRow]:
        return client.get(f"{BASE}queues/", query).context["rows"]

    # Of 10 L40S and four halves of one: 3 of 12 cards, though 5 of 14 rows of them; the other one uses 7.2 of 24.
    for name, card, milli in (
        ("search-suggest-inference", story.L40S, 1000), ("search-suggest-inference", story.MPS, 4000),
        ("voice-asr-inference", story.A100, 4800), ("voice-asr-inference", story.RTX, 2400),
    ):  # fmt: skip
        assert QueueUsage.objects.filter(queue=world.queues[name], card=card).update(allocated=milli) == 1
    everything = rows()
    starved = [row.queue.name for row in everything if row.starved]
    assert 0 < len(starved) < len(everything)
    assert [row.queue.name for row in rows(state="starved")] == starved
    parts = {story.MIG: 7, story.MPS: 2}
    shares: dict[str, float | None] = {}
    for row in everything:  # in physical cards: a slice counts as its part of one
        quota = sum(use.quota / parts.get(use.card, 1) for use in row.uses)
        used = sum(use.allocated / parts.get(use.card, 1) for use in row.uses)
        shares[row.queue.name] = used / quota if quota else None
    with_quota = [name for name, share in shares.items() if share is not None]
    without = [name for name, share in shares.items() if share is None]
    for order, sign in (("used", -1), ("unused", 1)):
        names_then = [row.queue.name for row in rows(order=order)]
        assert names_then == [*sorted(with_quota, key=lambda name: sign * shares[name]), *without]
    text = client.get(f"{BASE}queues/", {"state": "starved", "format": "csv"}).content.decode("utf-8-sig")
    assert {row["queue"] for row in csv.DictReader(io.StringIO(text))} == set(starved)
    assert [row.queue.name for row in rows(order="nonsense")] == [row.queue.name for row in everything]


def test_the_list_of_queues_says_who_borrows_and_who_lends_how_many_of_each_card(world) -> None:
    client = client_of(world.admin)

    def rows(**query: str) -> list[QueueRow]:
        return client.get(f"{BASE}queues/", query).context["rows"]

    everything = rows()
    sums: dict[str, list[int]] = {}
    for row in everything:
        for use in row.uses:
            assert not (use.borrowed and use.lent), row.queue.name
            assert not use.borrowed or row.queue.service_type == "training"
            assert not use.lent or row.queue.service_type == "inference"
            both = sums.setdefault(use.card, [0, 0])
            both[0], both[1] = both[0] + use.borrowed, both[1] + use.lent
    # Of each card by hand: what training uses beyond the cards that a full flood of inference would leave.
    beyond: dict[str, int] = {}
    for found in CardType.objects.filter(cluster=world.cluster):
        uses = QueueUsage.objects.filter(queue__cluster=world.cluster, card=found.name)
        quota = sum(use.quota for use in uses if use.queue.service_type == "inference")
        training = sum(use.allocated for use in uses if use.queue.service_type == "training")
        beyond[found.name] = max(0, training - max(0, 1000 * found.hardware - quota))
    assert max(beyond.values()) > 0
    for card, (takes, gives) in sums.items():
        assert takes == pytest.approx(beyond[card], abs=len(everything)), card
        assert gives == pytest.approx(beyond[card], abs=len(everything)), card
    for state, order in (("borrows", "borrowed"), ("lends", "lent")):
        named = {row.queue.name for row in everything if getattr(row, order)}
        found = rows(state=state, order=order)
        assert {row.queue.name for row in found} == named, state
        assert [getattr(row, order) for row in found] == sorted((getattr(row, order) for row in found), reverse=True)
        page = " ".join(client.get(f"{BASE}queues/", {"state": state}).content.decode().split())
        amount = next(use for use in found[0].uses if getattr(use, order))
        assert f"{state} {amounts.number(getattr(amount, order) / 1000)}" in page
        assert "shows-lending" in page, "in compact rows too"
        text = client.get(f"{BASE}queues/", {"state": state, "format": "csv"}).content.decode("utf-8-sig")
        lines = list(csv.DictReader(io.StringIO(text)))
        assert sum(float(line[order]) for line in lines) == pytest.approx(sum(beyond.values()) / 1000, abs=0.1)
    assert "shows-lending" not in client.get(f"{BASE}queues/").content.decode()
    of_card = rows(card=H200)
    assert of_card
    assert {use.card for row in of_card for use in row.uses} == {H200}
    shown = client.get(f"{BASE}queues/?state=lents").content.decode()
    assert "The filter State is left out: it does not know “lents”." in shown
    overview = client.get(BASE).content.decode()
    assert "queues/?state=lends&amp;order=lent" in overview
    assert f"queues/?state=borrows&amp;order=borrowed&amp;card={H200}" in overview


def test_a_long_list_of_queues_comes_in_pages_of_a_hundred(world) -> None:
    client, found, cursor, sizes = client_of(world.admin), [], "", []
    one = world.queues["search-suggest-inference"]
    Queue.objects.bulk_create(
        Queue(
            cluster=one.cluster,
            name=f"many-{number:03}",
            service_type=one.service_type,
            tenant=one.tenant,
            project=one.project,
        )
        for number in range(150)
    )
    everything = [queue.name for queue in Queue.objects.filter(cluster=one.cluster).order_by("name")]
    for _page in range(2):
        answer = client.get(f"{BASE}queues/", {"cursor": cursor})
        found += [row.queue.name for row in answer.context["rows"]]
        sizes.append(answer.content.count(b'<th scope="row"'))
        back, cursor = answer.context["page"].previous, answer.context["page"].next
    assert (sizes, back, cursor) == ([100, len(everything) - 100], "0", "")
    assert sorted(found) == everything
    assert f"{len(everything)} queues" in answer.content.decode()
    first = [row.queue.name for row in client.get(f"{BASE}queues/").context["rows"]]
    for nonsense in ("-1", "100000", "9" * 30, "٣", "x", "\0"):
        rows = client.get(f"{BASE}queues/", {"cursor": nonsense}).context["rows"]
        assert [row.queue.name for row in rows] == first, nonsense


@pytest.mark.parametrize(
    "cursor", ["x", "W10", "WyJuIixbImEiLCJiIl1d", "WyJuIiwgW11d", "WyJuIixbeyJhdCI6IjEifSwxXV0", "%00"]
)
def test_a_broken_cursor_is_the_first_page(world, cursor) -> None:
    client = client_of(world.admin)
    first = client.get(f"{BASE}gangs/").content.decode()
    assert names(client.get(f"{BASE}gangs/?cursor={cursor}").content.decode()) == names(first)


def test_filters_live_in_the_address_and_show_as_chips(world, subtests) -> None:
    client = client_of(world.admin)
    for path, wanted in {
        "gangs/?state=waiting&queue=search-training": {"search/embed-lap2-012", "search/rank-lap2-013"},
        "gangs/?reason=Fragmented": {"vision/segment-lap2-017"},
        "gangs/?card=NVIDIA-L40S/mps-24g*1/2": {"search/suggest-lite"},
        "gangs/?card=L40S MPS 1/2": {"search/suggest-lite"},
        "gangs/?needs=yes&service_type=inference": {"search/rank-v8"},
        "gangs/?q=OCR": {"vision/ocr", "vision/ocr-small"},
        "gangs/?order=waiting&service_type=inference": {"search/rank-v8"},
    }.items():
        with subtests.test(path):
            page = client.get(BASE + path).content.decode()
            assert set(names(page)) == wanted
            assert len(re.findall(r'class="chip">\s*<span>', page)) == path.count("=")
    assert "No gang matches" in client.get(f"{BASE}gangs/?q=nothing-has-this-name").content.decode()


def test_the_counted_gangs_are_those_behind_the_link(world, subtests) -> None:
    client = client_of(world.admin)
    overview = client.get(BASE).content.decode()
    for path in ("gangs/", "gangs/?state=waiting", "gangs/?service_type=inference"):
        with subtests.test(path):
            page = client.get(BASE + path).content.decode()
            link, said = re.search(r'class="subtitle">\s*<a href="([^"]+)">(\d+) gangs? wait', page).groups()
            if path == "gangs/":
                assert f'gangs/?needs=yes">{said} gang' in overview
            behind = client.get(f"{BASE}gangs/{link.replace('&amp;', '&')}&format=csv").content.decode("utf-8-sig")
            assert len(list(csv.DictReader(io.StringIO(behind)))) == int(said)
            chips = re.findall(r'<a href="([^"]*reason=[^"]+)">[^<]*<strong\s+class="num ms-1">(\d+)<', page)
            assert sum(int(count) for _link, count in chips) == int(said)
            for link, count in chips:
                rows = client.get(f"{BASE}gangs/{link.replace('&amp;', '&')}&format=csv").content.decode("utf-8-sig")
                assert len(list(csv.DictReader(io.StringIO(rows)))) == int(count)


def test_card_types_are_a_choice(world, subtests) -> None:
    client = client_of(world.admin)
    for page in ("gangs", "nodes"):
        with subtests.test(page):
            assert '<option value="NVIDIA-H200">H200</option>' in client.get(f"{BASE}{page}/").content.decode()
            short = client.get(f"{BASE}{page}/?card=H200").content.decode()
            assert '<option value="NVIDIA-H200" selected>H200</option>' in short


def test_shares_of_cards_are_counted_exactly() -> None:
    from tidesched_web.console.amounts import cards

    assert [cards(milli) for milli in (0, 125, 7250, 8000, 1234000)] == ["0", "0.125", "7.25", "8", "1,234"]


def test_an_unknown_choice_filters_nothing(world) -> None:
    page = client_of(world.admin).get(f"{BASE}queues/?state=Nonsense").content.decode()
    assert "search-training" in page


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"{BASE}queues/?state=Nonsense", "The filter State is left out: it does not know “Nonsense”."),
        (f"{BASE}reclaims/?from=noon", "The filter From (UTC) is left out: it does not know “noon”."),
        (
            f"{BASE}reclaims/?from=9999-12-31T23:00",
            "The filter From (UTC) is left out: “9999-12-31T23:00” lies in no year from 1000 to 2999.",
        ),
        ("/audit/?to=<b>", "The filter To (UTC) is left out: it does not know “&lt;b&gt;”."),
        (f"{BASE}queues/?state=Open", ""),
    ],
)
def test_a_filter_that_is_left_out_says_so(world, address, said) -> None:
    page = client_of(world.admin).get(address).content.decode()
    assert said in " ".join(page.split())
    assert ("is left out" in page) is bool(said)


def test_lists_export_what_the_filters_leave(world, subtests) -> None:
    client = client_of(world.admin)
    for name in LISTS:
        with subtests.test(name):
            answer = client.get(f"{BASE}{name}/?format=csv")
            assert answer["Content-Type"].startswith("text/csv")
            assert f'filename="{name}-demo.csv"' in answer["Content-Disposition"]
            rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
            assert len(rows) > 3
            assert {len(row) for row in rows} == {len(rows[0])}
    some = client.get(f"{BASE}gangs/?format=csv&state=running").content.decode()
    assert "running" in some
    assert ",waiting," not in some


def test_a_cell_is_no_formula() -> None:
    from tidesched_web.console.export import csv_response

    text = csv_response("x", ["=a"], [["=1+1"], ["=1"], ["-2"], [-2], ["plain"]]).content.decode("utf-8-sig")
    assert text.split() == ["'=a", "'=1+1", "'=1", "'-2", "-2", "plain"]


def figure(client: Client, path: str) -> dict:
    answer = client.get(BASE + path)
    assert answer["Content-Type"] == "application/json"
    return json.loads(answer.content)


def test_the_tide_adds_up_to_the_hardware(world) -> None:
    client = client_of(world.admin)
    table = client.get(f"{BASE}tide/?format=csv")
    rows = list(csv.DictReader(io.StringIO(table.content.decode("utf-8-sig"))))
    assert len(rows) > 200
    for row in rows:
        parts = sum(float(row[name]) for name in ("inference", "training", "foreign", "idle"))
        assert parts == pytest.approx(float(row["hardware (physical cards)"]), abs=0.03)
        assert float(row["borrowed, part of training"]) <= float(row["training"])
    # 48 H200, 64 A100, 40 L40S, 24 RTX, 14 slices of a seventh and 8 halves.
    assert float(rows[-1]["hardware (physical cards)"]) == pytest.approx(48 + 64 + 40 + 24 + 14 / 7 + 8 / 2, abs=0.01)
    table = client.get(f"{BASE}tide/?format=csv&card={story.MIG}").content.decode("utf-8-sig")
    assert float(list(csv.DictReader(io.StringIO(table)))[-1]["hardware (slices)"]) == 14
    drawn = figure(client, "tide/")
    assert [trace["name"] for trace in drawn["data"]] == [
        "Inference",
        "Training",
        "Borrowed, part of training",
        "Foreign",
        "Hardware",
        "Inference quota",
        "Waiting",
    ]
    one = figure(client, "tide/?card=NVIDIA-H200")
    assert one["data"][-2]["y"] != drawn["data"][-2]["y"]
    assert (one["data"][-1]["name"], one["data"][-1]["yaxis"]) == ("Waiting", "y2"), "in a panel of its own"
    assert one["layout"]["yaxis2"]["range"][1] >= max(one["data"][-1]["y"]), "and never cut"
    assert figure(client, "tide/?theme=dark")["data"][0]["fillcolor"] == "#4aa3dc"
    assert figure(client, "tide/?card=unknown")["data"] == []
    assert "<table" in client.get(f"{BASE}tide/?format=table").content.decode()


def test_usage_and_timings_are_drawn(world) -> None:
    client = client_of(world.admin)
    use = figure(client, "queues/search-training/usage/?card=NVIDIA-H200")
    assert [trace["name"] for trace in use["data"]] == ["In use", "Promised", "Quota"]
    assert figure(client, "queues/search-training/usage/?card=none")["data"] == []
    steps = figure(client, "sessions/timings/")
    assert [trace["name"] for trace in steps["data"]] == ["settle", "snapshot", "decide", "write", "send", "record"]
    colours = {trace["marker"]["color"] for trace in steps["data"]}
    greys = {colour for colour in colours if len({colour[1:3], colour[3:5], colour[5:7]}) == 1}
    assert (len(colours), greys) == (6, set())


def test_the_card_type_of_a_chart_lives_in_the_address(world) -> None:
    client = client_of(world.admin)
    for path in ("", "queues/search-training/"):
        page = client.get(f"{BASE}{path}?card={H200}").content.decode()
        chosen = re.search(r'<select[^>]*data-param="card">(.*?)</select>', page, re.DOTALL)[1]
        assert f'<option value="{H200}" selected>' in chosen, path
        assert f'data-query="card={H200}"' in page, path
        assert client.get(f"{BASE}{path}?card=nonsense").status_code == 200


def test_a_card_type_has_one_colour_whatever_else_was_taken_back() -> None:
    noon = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
    known = [f"card-{number}" for number in range(9)]

    def looks(*taken: tuple[str, float]) -> dict[str, tuple[str, str]]:
        drawn = reclaims.figure([noon], [(noon, card, cards) for card, cards in taken], "light", known)
        return {bar.name: (bar.marker.color, bar.marker.pattern.shape) for bar in drawn.data}

    few = looks(("card-3", 9), ("card-1", 2))
    more = looks(("card-1", 90), ("card-5", 50), ("card-3", 4), ("gone", 1))
    assert few["card-1"] == more["card-1"]
    assert few["card-3"] == more["card-3"], "it is not the largest any more"
    assert looks(("gone", 5))["gone"] == more["gone"], "one that no cluster has any more keeps its look too"
    each = [looks((card, 1))[card] for card in known]
    assert len(set(each)) == len(known), "no two look alike"
    rest = looks(*((card, 9 - place) for place, card in enumerate(known)))["other cards"]
    assert rest[0] not in {colour for colour, _shape in each}


def test_a_fragment_is_only_the_changing_part(world) -> None:
    client = client_of(world.admin)
    fragment = client.get(BASE, headers={"HX-Request": "true", "HX-Target": "live"}).content.decode()
    whole = client.get(BASE).content.decode()
    assert fragment.lstrip().startswith('<div id="live" data-live="sessions alerts clusters drift changes"')
    assert "<html" not in fragment
    assert len(fragment) < len(whole)


def test_a_name_leads_to_the_newest_gang_of_that_name(world) -> None:
    client = client_of(world.admin)
    gang = world.gangs["vision/ocr"]
    assert client.get(f"{BASE}gangs/vision/ocr/")["Location"] == f"{BASE}gangs/{gang.pk}/"
    assert client.get(f"{BASE}search/?q=vision/ocr-small").status_code == 302
    assert client.get(f"{BASE}search/?q=sandbox")["Location"] == f"{BASE}queues/sandbox-training/"


def test_pages_are_not_kept_by_anybody(world) -> None:
    answer = client_of(world.admin).get(BASE)
    assert "no-store" in answer["Cache-Control"]
    policy = answer["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "style-src-attr 'none'" in policy


def test_the_object_of_a_gang_is_a_pod_group(world) -> None:
    import html

    import yaml

    gang = world.gangs["search/embed-lap2-012"]
    page = client_of(world.admin).get(f"{BASE}gangs/{gang.pk}/").content.decode()
    text = re.search(r'<pre class="manifest" id="object" tabindex="0">(.*?)</pre>', page, re.DOTALL)
    assert text is not None
    document = yaml.safe_load(html.unescape(text[1]))
    assert list(document) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert document["spec"]["minResources"] == {"cpu": "16", "memory": "131072Mi"}


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("queues/%00/", 404),
        ("gangs/a/%00/", 404),
        ("search/?q=%00", 200),
        ("gangs/?q=%00", 200),
        ("tide/?card=%00", 200),
        ("reclaims/?q=a%00b", 200),
    ],
)
def test_a_zero_byte_is_in_no_name(world, address, status) -> None:
    assert client_of(world.member).get(f"/clusters/demo/{address}").status_code == status


def test_reclaims_are_found_by_moment_card_tenant_and_loser(world) -> None:
    """And the cell says one moment, the other on hover; the clock of the bounds is the reader's choice."""
    client = client_of(world.admin)
    row = world.reclaims[2]
    path = f"{BASE}reclaims/"
    page = client.get(path).content.decode()
    assert f'datetime="{row.at.isoformat()}" title="{timezone.localtime(row.at):%Y-%m-%d %H:%M:%S}' in page
    wall = f"{timezone.localtime(row.wall_at):%Y-%m-%d %H:%M:%S}"
    assert re.search(rf'title="[^"]* · {wall} [^"]*by the real clock"', page), "the other clock on hover"
    first, after = ((row.at + dt.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M") for minutes in (0, 1))
    wall = (row.wall_at.strftime("%Y-%m-%dT%H:%M"), (row.wall_at + dt.timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M"))

    def found(query: str) -> set[int]:
        answer = client.get(f"{path}?{query}&format=csv").content.decode("utf-8-sig")
        return {int(line["id"]) for line in csv.DictReader(io.StringIO(answer))}

    assert row.pk in found(f"from={first}&to={after}&loser=embed-lap2-001&card=H200&gainer_tenant=search")
    assert row.pk in found(f"from={wall[0]}&to={wall[1]}&clock=wall")
    assert row.pk not in found(f"to={first}")
    assert row.pk not in found("loser_tenant=shop")
    assert found("card=A100-SXM4-80GB") == set()
    assert {reclaim.pk for reclaim in world.reclaims} == found("card=nowhere")


def test_the_density_of_lists_is_kept_for_each_person(world) -> None:
    client, other = client_of(world.admin), client_of(world.auditor)
    assert 'data-density="dense"' in client.get(f"{BASE}gangs/").content.decode()
    here = f"{BASE}gangs/?state=running"
    answer = client.post("/profile/density/", {"density": "comfortable", "next": here})
    assert (answer.status_code, answer.headers["Location"]) == (302, here)
    assert 'data-density="comfortable"' in client.get(here).content.decode()
    assert 'data-density="comfortable"' in client.get(f"{BASE}reclaims/").content.decode()
    # A text that is no address is no name of a page either.
    assert client.post("/profile/density/", {"density": "dense", "next": "foo"}).status_code == 302
    elsewhere = client.post("/profile/density/", {"density": "dense", "next": "https://elsewhere.example/"})
    assert elsewhere["Location"] == "/profile/"
    assert 'data-density="dense"' in other.get(here).content.decode()
    for density, back in (("huge", "https://evil.example/"), ("comfortable", "//evil.example/")):
        answer = client.post("/profile/density/", {"density": density, "next": back})
        assert answer.headers["Location"] == "/profile/"
    assert 'data-density="comfortable"' in client.get(here).content.decode(), "an unknown density changes nothing"
    assert Client().post("/profile/density/", {"density": "dense"}).headers["Location"].startswith("/sign-in/")


def test_a_name_is_cut_in_its_middle_and_stays_whole_for_copying(world) -> None:
    page = client_of(world.admin).get(f"{BASE}gangs/").content.decode()
    cut = re.search(
        r'title="([^"]+)"><span class="ns">([^<]*)</span><span class="head">([^<]*)</span><span class="tail">([^<]*)',
        page,
    )
    assert cut is not None
    assert cut[1] == cut[2] + cut[3] + cut[4]


def test_who_waits_stands_first_then_who_runs_then_who_is_over(world) -> None:
    page = client_of(world.admin).get(f"{BASE}gangs/").content.decode()
    shown = [next(gang for gang in world.gangs.values() if gang.key == name) for name in names(page)]
    ranks = [0 if gang.needs else 2 if gang.gone_at or gang.state in ("finished", "failed") else 1 for gang in shown]
    assert ranks == sorted(ranks)
    assert {0, 1} <= set(ranks)
    waits = [gang.waiting_since for gang in shown if gang.needs]
    assert waits == sorted(waits)
    newest = client_of(world.admin).get(f"{BASE}gangs/?order=newest").content.decode()
    assert names(newest)[0] == max(world.gangs.values(), key=lambda gang: (gang.submitted_at, gang.pk)).key


def test_names_are_cut_in_their_middle_and_stand_whole_in_the_title(world) -> None:
    client = client_of(world.admin)
    gangs = client.get(f"{BASE}gangs/?queue=search-training").content.decode()
    assert '<span class="cut" title="search-training">' in gangs
    reclaims = client.get(f"{BASE}reclaims/").content.decode()
    for reclaim in world.reclaims[-1:]:
        assert f'<span class="cut" title="{reclaim.victims.first().gang}">' in reclaims
        assert f'<span class="cut" title="{reclaim.reclaimer}">' in reclaims


def test_the_button_for_compact_rows_says_what_it_is_and_whether_it_is_on(world) -> None:
    client = client_of(world.admin)
    for density, pressed in (("dense", "true"), ("comfortable", "false")):
        client.post("/profile/density/", {"density": density, "next": f"{BASE}gangs/"})
        button = re.search(r'<button class="btn" type="submit" aria-pressed="(\w+)"[^>]*>(.*?)</button>',
                           client.get(f"{BASE}gangs/").content.decode(), re.DOTALL)  # fmt: skip
        assert button[1] == pressed
        assert button[2].strip().endswith("Compact")


def test_each_figure_that_is_called_quota_has_a_name_of_its_own(world) -> None:
    """With a tide plan the figure that is edited, the one that holds and the cards that there are are three."""
    queue = world.queues["search-training"]
    base = CardQuota.objects.get(queue=queue, card_type__name=H200).cards
    hardware = CardType.objects.get(cluster=world.cluster, name=H200).hardware
    Queue.objects.filter(pk=queue.pk).update(tide={H200: base + 20})
    page = " ".join(client_of(world.member).get(f"{BASE}queues/search-training/").content.decode().split())
    before, _mark, behind = page.partition('id="quota-figures"')
    table = behind.partition("</table>")[0]
    assert before.rpartition("<div ")[2].startswith('class="table-responsive'), "it scrolls in its card, if need be"
    row = next(one for one in table.split("<tr>") if "H200</span>" in one)
    said = {label: re.search(rf'data-label="{label}">(?:<strong>)?([^<]+)', row)[1] for label in QUOTA_FIGURES}
    assert said["Base quota"] == str(base)
    assert said["Quota in force"] == str(base + 20)
    assert said["Cards of the cluster"] == str(hardware)
    assert f"of {base + 20}" in page, "the bar counts against the quota in force"


def test_the_head_of_a_column_sorts_queues_by_the_part_of_their_quota_that_is_in_use(world) -> None:
    client = client_of(world.admin)
    for query, link in (("", "order=used"), ("?order=used", "order=unused"), ("?order=unused", "order=used")):
        head = client.get(f"{BASE}queues/{query}").content.decode().partition("<thead>")[2].partition("</thead>")[0]
        assert f'href="?{link}"' in head


def test_an_area_of_the_map_is_as_strong_as_its_quota_is_used() -> None:
    tones = set()
    for used in (0, 1, 3, 5, 8):
        area = quota_map.Area(f"q{used}", "", "q", "q", "inference", 8, used, 0, leaf=True)
        for theme in ("light", "dark"):
            marker = quota_map.figure([area], theme).data[0]
            (tone,), (ink,) = marker.marker.colors, marker.textfont.color
            assert palette.contrast(tone, ink) >= 4.5, (used, theme)
            tones.add((theme, tone))
    assert len(tones) == 10, "each quarter has its own tone"


@pytest.mark.parametrize(
    "path",
    [
        "gangs/",
        "queues/",
        "nodes/",
        "reclaims/",
        "sessions/",
        "changes/",
        "drift/",
        "quota/",
        "tide-steps/",
        "tree/export/",
    ],
)
def test_the_csv_of_a_list_has_the_same_heads_in_each_language(world, path: str) -> None:
    """They are names that programs read; the words of the page are in the CSV of a figure."""
    client, found = client_of(world.admin), {}
    for language in ("en", "zh-hans"):
        User.objects.filter(pk=world.admin.pk).update(language=language)
        text = client.get(f"{BASE}{path}", {"format": "csv"}).content.decode("utf-8-sig")
        found[language] = text.splitlines()[0].split(",")
    assert found["en"] == found["zh-hans"]
    if path != "tree/export/":
        assert [head for head in found["en"] if not re.fullmatch("[a-z_]+", head)] == []


def test_the_csv_of_a_figure_has_the_words_of_its_table(world) -> None:
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    address = re.search(r'data-figure="([^"]+)"', client_of(world.admin).get(f"{BASE}sessions/").content.decode())[1]
    text = client_of(world.admin).get(address, {"format": "csv"}).content.decode("utf-8-sig")
    assert re.search("[\u4e00-\u9fff]", text.splitlines()[0])
