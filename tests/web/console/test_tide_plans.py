"""The pages of tide plans: list, week, editor, switch, preview; written as changes, read within sight."""

import datetime as dt
import html
import json
import re

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from tests.quota_writes import write_tide_plan
from tests.web.console import world as story
from tests.web.console.cast import L40S, RTX
from tests.web.console.test_changes import act, drafted
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.models import CardType, Cluster, ClusterMode, PolicyRevision
from tidesched_web.console.forms.tide_plan import PlanForm
from tidesched_web.console.tide_week import week_of
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.quota import tide
from tidesched_web.quota.models import CardQuota, Queue, TidePlan, TideStep
from tidesched_web.scheduling.models import UsageRollup
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.django_db
NIGHT = {
    "name": "night", "days": list(tide.WEEKDAYS), "start": "18:00", "end": "06:00",
    "quota": {"search-suggest-inference": {L40S: {"add": -4}}, "maps-route-inference": {L40S: {"add": 6}}},
}  # fmt: skip
LIST = "/clusters/demo/tide-plans/"


@pytest.fixture
def world(world) -> story.World:
    document = {"enabled": True, "layers": [NIGHT], "exceptions": {"2026-03-05": "none"}}
    write_tide_plan(cluster=world.cluster, name="nights", document=document, actor="tests")
    return world


def sent(**more):
    """What a browser sends of a plan with one layer of one line."""
    return {
        "name": "days", "position": "3", "time_zone": "Asia/Shanghai", "exceptions": "2026-10-01 sun\n2026-10-02",
        "layer": "7", "l7-name": "day", "l7-days": ["mon", "tue"], "l7-start": "08:00",
        "l7-end": "00:00", "l7-line": "0", "l7-x0-queue": "voice-asr-inference", "l7-x0-card": RTX,
        "l7-x0-act": "take", "l7-x0-cards": "2", **more,
    }  # fmt: skip


def applied(client, answer, reason="x"):
    """A form of a plan leads to its draft, which is applied there."""
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    change = QuotaChange.objects.get(pk=int(re.search(r"/changes/(\d+)/$", answer["Location"])[1]))
    return act(client, change, "apply", reason=reason, when="now")


def test_the_list_says_what_holds_now(world):
    page = client_of(world.admin).get(LIST).content.decode()  # the cluster's clock says 20:15 of a Wednesday
    for words in (
        "nights",
        "1 plan is on; 2 figures are another than the base now.",
        "maps-route-inference",
        "New plan",
    ):
        assert words in page
    write_tide_plan(cluster=world.cluster, name="nights", document=None, actor="tests")
    empty = client_of(world.admin).get(LIST).content.decode()
    assert "No tide plan yet" in empty


def spare(world, name: str, seconds: int) -> Gang:
    gang = Gang.objects.filter(queue__name=name, gone_at__isnull=True).first()
    Gang.objects.filter(pk=gang.pk).update(spared_until=world.cluster.clock() + dt.timedelta(seconds=seconds))
    return gang


def test_the_cool_down_in_force_and_whom_it_spares_stand_on_the_page(world):
    client, policies = client_of(world.admin), PolicyRevision.objects.filter(cluster=world.cluster)
    policies.update(text=FOUNDING_POLICY)
    page = client.get(LIST).content.decode()
    assert "An evicted gang is not evicted again for 1 min" in page
    assert "No gang." in page
    own, others = spare(world, "search-training", 90), spare(world, "research-training", 60)
    over = spare(world, "vision-training", -60)
    page = client.get(LIST).content.decode()
    part = page.partition('id="spared-title"')[2]
    assert "2 gangs of 2 queues." in part
    assert own.key in part
    assert others.key in part
    assert over.key not in part, "its cool-down is over"
    part = client_of(world.member).get(LIST).content.decode().partition('id="spared-title"')[2]
    assert "1 gang of 1 queue." in part
    assert own.key in part
    assert others.key not in part
    longer = "configurations:\n- name: reclaim\n  arguments:\n    cooldownSeconds: 600\n"
    for more, said in ((longer, "10 min"), (longer.replace("600", "0"), "has no cool-down")):
        policies.update(text=f"{FOUNDING_POLICY}\n{more}")
        assert said in client.get(LIST).content.decode().partition('id="spared-title"')[2]


def test_a_member_is_not_told_that_there_is_no_plan_where_others_have_one(world):
    page = client_of(world.stranger).get(LIST).content.decode()
    assert "nights" not in page
    assert "No tide plan is about queues of your tenants" in page
    assert "No tide plan yet" not in page


@pytest.mark.parametrize("mode", [ClusterMode.OBSERVE, ClusterMode.QUOTA])
def test_no_cool_down_is_said_where_another_scheduler_evicts(world, mode):
    client, gang = client_of(world.admin), spare(world, "search-training", 90)
    assert gang.key in client.get(LIST).content.decode()
    Cluster.objects.filter(pk=world.cluster.pk).update(mode=mode)
    page = client.get(LIST).content.decode()
    assert 'id="spared-title"' not in page
    assert gang.key not in page
    assert "Cool-down" not in client.get(f"/clusters/demo/gangs/{gang.pk}/").content.decode()


def test_a_figure_that_holds_now_is_not_an_order_to_act_at_once(world):
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    client = client_of(world.admin)
    page = client.get(LIST).content.decode()
    assert ">现在</th>" in page
    assert "立即</th>" not in page


def test_a_plan_shows_its_week_as_bands_and_as_a_table(world):
    response = client_of(world.admin).get(f"{LIST}nights/")
    page = response.content.decode()
    week = response.context["week"]
    assert (week.key, week.zone, week.days[3].exception) == ("2026-W10", "UTC", "none")
    (maps, suggest) = week.rows
    assert [band.cards for band in maps.bands][:4] == [20, 14, 20, 14], "the night of Sunday goes on into Monday"
    assert (maps.base, suggest.base, min(band.cards for band in suggest.bands)) == (14, 10, 6)
    assert sum(band.width for band in maps.bands) == pytest.approx(100, abs=0.1)
    thursday = [band for band in maps.bands if band.start.day == 5 and band.start.hour == 6]
    assert thursday[0].end == dt.datetime(2026, 3, 6, 18, tzinfo=dt.UTC), "no night begins on the fifth"
    # Each band that is not the base has its number where there is room, those below the base too.
    numbers = re.findall(r'<text class="band-label[^"]*"[^>]*>(\d+)</text>', page)
    turned = [band for row in week.rows for band in row.bands if band.labelled and band.kind != "base"]
    assert numbers == [str(band.cards) for band in turned]
    assert {"6", "20"} == set(numbers), "less than the base, and more"
    assert "Open now: nights: night." in page
    assert "style=" not in page
    following = [(row["queue"], row["card"], row["now"], row["then"]) for row in response.context["next_figures"]]
    assert following == [("maps-route-inference", L40S, 20, 14), ("search-suggest-inference", L40S, 6, 10)]
    assert "Next, at 2026-03-05 06:00:00 UTC, by the plans:" in page
    other = client_of(world.admin).get(f"{LIST}nights/?week=2026-W44").context["week"]
    assert other.days[0].date == dt.date(2026, 10, 26)
    for text in ("nonsense", "9999-W52", "0001-W01", "1000-W01", "2999-W02"):
        assert client_of(world.admin).get(f"{LIST}nights/?week={text}").context["week"].key == "2026-W10", text
    assert client_of(world.admin).get(f"{LIST}nothing/").status_code == 404


def test_a_member_sees_their_part_and_changes_nothing(world):
    client = client_of(world.member)
    page = client.get(f"{LIST}nights/").content.decode()
    assert "search-suggest-inference" in page
    assert "maps-route-inference" not in page
    assert "1 queue of another tenant" in page
    assert "Switch off" not in page
    assert client.get(f"{LIST}nights/edit/").status_code == 403
    for path in ("nights/switch/", "nights/delete/"):
        assert client.post(f"{LIST}{path}").status_code == 403
    assert client.get("/clusters/demo/new/tide-plan/").status_code == 403
    assert client.post("/clusters/demo/new/tide-plan/week/", sent()).status_code == 403
    assert client_of(world.stranger).get(f"{LIST}nights/").status_code == 404


def test_a_plan_is_made_by_the_form(world):
    client = client_of(world.admin)
    assert 'name="l0-start"' in client.get("/clusters/demo/new/tide-plan/").content.decode()
    applied(client, client.post("/clusters/demo/new/tide-plan/", sent()), "less by day")
    plan = TidePlan.objects.get(name="days")
    assert plan.exceptions == {"2026-10-01": "sun", "2026-10-02": "none"}
    assert plan.layers == [
        {
            "name": "day", "days": ["mon", "tue"], "start": "08:00", "end": "24:00",
            "quota": {"voice-asr-inference": {RTX: {"add": -2}}},
        }
    ]  # fmt: skip
    assert (plan.position, plan.time_zone, plan.enabled) == (3, "Asia/Shanghai", False)
    entry = AuditEntry.objects.get(action="tide_plan.create", object_label="days")
    assert entry.reason == "less by day"
    again = client.post("/clusters/demo/new/tide-plan/", sent())
    assert "There is a plan of this name already." in again.content.decode()


def test_times_of_a_layer_are_of_24_hours_to_the_midnight_that_ends_a_day(world):
    page = client_of(world.admin).get("/clusters/demo/new/tide-plan/").content.decode()
    fields = {name: tag for tag, name in re.findall(r'(<input[^>]* name="l0-(start|end)"[^>]*>)', page)}
    assert {re.search(r'type="(\w+)"', tag)[1] for tag in fields.values()} == {"text"}
    takes = {name: re.search(r'pattern="([^"]+)"', tag)[1] for name, tag in fields.items()}
    for name, text, taken in (
        ("start", "23:59", True), ("start", "24:00", False), ("start", "9:00 pm", False),
        ("end", "00:00", True), ("end", "24:00", True), ("end", "24:01", False),
    ):  # fmt: skip
        assert bool(re.fullmatch(takes[name], text)) is taken, (name, text)


def test_a_plan_that_cannot_be_switched_on_says_why_as_long_as_it_is_so(world):
    client = client_of(world.admin)
    applied(client, client.post("/clusters/demo/new/tide-plan/", sent(**{"l7-x0-act": "add", "l7-x0-cards": "500"})))
    for _look in range(2):
        page = client.get(f"{LIST}days/").content.decode()
        assert "This plan cannot be switched on as it is." in page
        assert "would add up to 518" in page
    applied(client, client.post(f"{LIST}days/edit/", sent(version="1")))
    assert "cannot be switched on" not in client.get(f"{LIST}days/").content.decode()


def test_an_edit_may_drop_exceptions_and_is_refused_when_somebody_was_faster(world):
    client = client_of(world.admin)
    applied(client, client.post("/clusters/demo/new/tide-plan/", sent()))
    plan = TidePlan.objects.get(name="days")
    edit = sent(exceptions="2026-10-01 mon", version=str(plan.version), **{"l7-x0-act": "set"})
    applied(client, client.post(f"{LIST}days/edit/", edit))
    plan.refresh_from_db()
    assert plan.exceptions == {"2026-10-01": "mon"}
    assert plan.layers[0]["quota"] == {"voice-asr-inference": {RTX: {"set": 2}}}
    stale = client.post(f"{LIST}days/edit/", edit | {"position": "9"})
    assert stale.status_code == 412
    assert "was changed since you looked at it" in stale.content.decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a/b"}, "Give it a name without a slash."),
        ({"l7-x0-cards": "many"}, "is no whole number"),
        ({"l7-x0-queue": "gone"}, "There is no queue"),
        ({"l7-start": ""}, "is no time of day"),
        ({"l7-days": []}, "Choose at least one day."),
        ({"time_zone": "Asia/Shangai"}, "Did you mean"),
        ({"l7-x0-cards": "70", "l7-x0-act": "set", "enabled": "on"}, "below the hardware of the cluster would"),
        (
            {"l7-line": ["0", "1"], "l7-x1-queue": "voice-asr-inference", "l7-x1-card": RTX, "l7-x1-cards": "1"},
            "has two lines for one card type",
        ),
    ],
)
def test_what_is_wrong_is_said_in_the_form(world, change, words):
    response = client_of(world.admin).post("/clusters/demo/new/tide-plan/", sent(**change))
    assert response.status_code == 400
    assert words in response.content.decode()
    assert not TidePlan.objects.filter(name="days").exists()


def test_all_that_is_wrong_is_said_at_once_each_at_its_field(world):
    wrong = {
        "l7-start": "25:99",
        "l7-end": "7",
        "l7-days": [],
        "l7-x0-cards": "many",
        "time_zone": "Mars",
    }
    response = client_of(world.admin).post(
        "/clusters/demo/new/tide-plan/", sent(exceptions="soon sun\n2026-10-01 x", **wrong)
    )
    assert response.status_code == 400
    page = html.unescape(response.content.decode())
    start = "“25:99” is no time of day: write hours and minutes from 00:00 to 23:59, such as 22:00."
    at_field = page.partition('id="l7-start-error"')[2]
    assert at_field.partition("</div>")[0].endswith(start)
    summary = page.partition("Nothing was saved:")[2].partition("</ul>")[0]
    for words in (
        f"day · From: {start}",
        "day · To: “7” is no time of day",
        "Choose at least one day.",
        "'many' is no whole number",
        "Time zone: There is no time zone “Mars”.",
        "'soon' is no date such as 2026-10-01.",
        "Exceptions: 2026-10-01: a date counts as one of",
    ):
        assert words in summary, words
    assert 'id="l7-x0-error"' in page


def test_without_scripts_layers_and_lines_come_and_go(world):
    client = client_of(world.admin)

    def after(act):
        response = client.post("/clusters/demo/new/tide-plan/", sent(act=act))
        return [(layer.number, [line.number for line in layer.lines]) for layer in response.context["form"].layers]

    assert after("add_layer") == [("7", ["0"]), ("8", ["0"])]
    assert after("add_line:7") == [("7", ["0", "1"])]
    assert after("drop_line:7.0") == [("7", [])]
    assert after("drop_layer:7") == []


def test_while_somebody_types_the_week_and_the_errors_follow(world):
    client = client_of(world.admin)
    page = client.post("/clusters/demo/new/tide-plan/week/", sent()).content.decode()
    assert "voice-asr-inference" in page
    assert "band-lowered" in page
    assert "banner" not in page
    wrong = client.post("/clusters/demo/new/tide-plan/week/", sent(**{"l7-x0-cards": "70", "l7-x0-act": "set"}))
    assert "below the hardware of the cluster would" in wrong.content.decode()
    fresh = {
        "layer": ["7", "8"],
        "l8-name": "",
        "l8-days": ["mon"],
        "l8-start": "22:00",
        "l8-end": "07:00",
        "l8-line": "0",
    }
    page = client.post("/clusters/demo/new/tide-plan/week/", sent(**fresh)).content.decode()
    assert "band-lowered" in page
    assert "banner" not in page, "a layer that was added just now is no mistake yet"
    only = client.post(
        "/clusters/demo/new/tide-plan/week/", sent(**{"l7-name": "", "l7-x0-queue": "", "l7-x0-cards": ""})
    )
    assert (only.status_code, "banner" in only.content.decode()) == (200, False)
    named = client.post("/clusters/demo/new/tide-plan/week/", sent(**(fresh | {"l8-name": "weekend"})))
    assert "weekend" in named.content.decode()
    assert "banner" in named.content.decode()
    assert client.get("/clusters/demo/new/tide-plan/week/").status_code == 405
    assert not TidePlan.objects.filter(name="days").exists()


def test_a_zone_that_is_none_is_said_once_with_the_one_that_was_meant(world):
    response = client_of(world.admin).post("/clusters/demo/new/tide-plan/", sent(time_zone="北京"))
    page = html.unescape(response.content.decode())
    assert page.count("There is no time zone “北京”. Did you mean “Asia/Shanghai”?") == 1
    assert '<a href="#time_zone">' in page


def test_more_for_training_than_there_is_names_whose_sum_it_is_and_what_would_help(world):
    client = client_of(world.admin)
    assert "How does a plan lend cards to training?" in client.get("/clusters/demo/new/tide-plan/").content.decode()
    more = sent(**{"l7-x0-queue": "search-training", "l7-x0-card": L40S, "l7-x0-act": "add", "l7-x0-cards": "500"})
    typed = client.post("/clusters/demo/new/tide-plan/week/", more).content.decode()
    applied(client, client.post("/clusters/demo/new/tide-plan/", more))
    kept = client.get(f"{LIST}days/").content.decode()
    for page in (typed, kept):
        said = re.split(r"</div>\s*</div>|<section", html.unescape(page).partition('<div class="banner')[2])[0]
        assert "× L40S, but it has" in said
        assert "NVIDIA-" not in said
        assert "Inference that gives up cards does not lift this" in said
        assert "let it give up cards" not in said


def test_each_way_out_of_a_breach_lifts_it_when_it_is_followed(world):
    """Inference gives up 2, and a queue of training gets 6 more than its tenant has: two ways, both lift it."""
    client, first = client_of(world.admin), world.queues["search-training"]
    CardQuota.objects.filter(queue=first, card_type__name=L40S).update(cards=12)
    second = Queue.objects.create(
        cluster=world.cluster, name="search-ranking", service_type="training", tenant=first.tenant,
        business_line=first.business_line,
    )  # fmt: skip
    card = CardType.objects.get(cluster=world.cluster, name=L40S)
    CardQuota.objects.create(cluster=world.cluster, card_type=card, service_type="training", queue=second, cards=8)
    rows = {
        "l7-line": ["0", "1"], "l7-x0-queue": "search-suggest-inference", "l7-x0-card": L40S, "l7-x0-act": "take",
        "l7-x1-queue": "search-training", "l7-x1-card": L40S, "l7-x1-act": "add",
    }  # fmt: skip

    def said(**more: object) -> str:
        page = client.post("/clusters/demo/new/tide-plan/week/", sent(**{**rows, **more})).content.decode()
        return re.split(r"</div>\s*</div>|<section", html.unescape(page).partition('role="alert"')[2])[0]

    breach = said(**{"l7-x1-cards": "6"})
    assert "below Search would add up to 26 × L40S, but it has 20." in breach
    assert "Take the line of search-training out of “days: day”: it gets 6 × L40S more there." in breach
    assert "Or let search-ranking give up 6 × L40S in the same layer" in breach
    assert "Inference that gives up cards does not lift this" in breach
    gives = {"l7-line": ["0", "1", "2"], "l7-x2-queue": "search-ranking", "l7-x2-card": L40S, "l7-x2-act": "take"}
    assert said(**{"l7-line": ["0"]}) == ""
    assert said(**gives, **{"l7-x1-cards": "6", "l7-x2-cards": "6"}) == ""
    assert "Let search-training get 6 × L40S less in “days: day”: it gets 8" in said(
        **gives, **{"l7-x1-cards": "8", "l7-x2-cards": "2"}
    )
    assert said(**gives, **{"l7-x1-cards": "2", "l7-x2-cards": "2"}) == ""


@pytest.mark.parametrize(
    "written", ["2026-10-01: sun", "2026-10-01 Sunday", "2026-10-01：星期日", "2026-10-01 周日", "2026-10-01  星期天"]
)
def test_an_exception_is_read_as_people_and_documents_write_it(written):
    data = QueryDict(mutable=True)
    data["exceptions"] = f"{written}\n2026-10-02\n2026-10-03 无\n2026-10-04 soon"
    expected = {"2026-10-01": "sun", "2026-10-02": "none", "2026-10-03": "none", "2026-10-04": "soon"}
    assert PlanForm.read(data).document()["exceptions"] == expected


def test_the_week_and_its_table_are_in_the_zone_of_the_plan(world):
    """The plan is in UTC and the reader in Shanghai: bands, titles and table have one zone, and the heads name it."""
    User.objects.filter(pk=world.admin.pk).update(time_zone="Asia/Shanghai")
    page = client_of(world.admin).get(f"{LIST}nights/?week=2026-W41").content.decode()
    rows = [re.sub(r"<[^>]+>", " ", row) for row in page.partition("The week as a table")[2].split("<tr>")]
    assert "From (UTC)" in rows[1]
    assert "To (UTC)" in rows[1]
    assert any("18:00" in row for row in rows)
    assert not any("02:00" in row for row in rows), "18:00 UTC is 02:00 in Shanghai"


def test_two_plans_that_turn_one_figure_are_named_where_it_is_written_and_read(world):
    client = client_of(world.admin)
    both = {"l7-x0-queue": "maps-route-inference", "l7-x0-card": L40S, "l7-x0-act": "set", "l7-x0-cards": "16"}
    later = sent(
        name="route", position="0", exceptions="", time_zone="UTC", **both, **{"l7-start": "20:00", "l7-end": "23:00"}
    )
    words = "The plans nights and route both turn the L40S quota of queue maps-route-inference in the same hours, "
    why = "Both plans have position 0, so the later name applies last."
    typed = client.post("/clusters/demo/new/tide-plan/week/", later).content.decode()
    applied(client, client.post("/clusters/demo/new/tide-plan/", later))
    saved = client.get(f"{LIST}route/").content.decode()
    for page in (typed, saved):
        assert words in page
        assert why in page
    assert "If this plan is switched on" in saved
    assert words not in client.get(LIST).content.decode(), "it is off"
    switched = client.post(f"{LIST}route/switch/", {"enabled": "on"})
    assert words in client.get(switched["Location"]).content.decode()
    applied(client, switched)
    for path in (LIST, f"{LIST}nights/", f"{LIST}route/", f"{LIST}nights/edit/"):
        page = client.get(path).content.decode()
        assert words in page, path
        assert "route decides it then (= 16); what nights does to it (+6) has no effect." in page
    assert 'href="/clusters/demo/tide-plans/route/edit/#position"' in client.get(LIST).content.decode()
    assert words not in client_of(world.member).get(LIST).content.decode(), "no queue of theirs"
    nights = later | {"name": "nights", "version": "1", "position": "4", "enabled": "on"}
    applied(client, client.post(f"{LIST}nights/edit/", nights))
    page = client.get(LIST).content.decode()
    assert "Position 4 applies after position 0." in page


def keep_steps(world):
    """The night of Tuesday as it was taken, and one that the cluster refused."""
    opened = dt.datetime(2026, 3, 3, 18, tzinfo=dt.UTC)
    for name, before, after, answer, message in (
        ("maps-route-inference", 14, 20, "taken", ""),
        ("search-suggest-inference", 10, 8, "refused", "Not overwritten: .metadata.annotations is set by kubectl-edit"),
    ):
        queue = Queue.objects.get(cluster=world.cluster, name=name)
        TideStep.objects.create(
            cluster=world.cluster, queue=queue, card=L40S, plans=["nights"], layers=["nights: night"], since=opened,
            at=opened, answered_at=opened, before=before, after=after, wanted=20 if after == 20 else 6, answer=answer,
            message=message,
        )  # fmt: skip


def test_what_the_steps_of_a_plan_did_stands_on_its_page_and_in_a_list(world):
    client = client_of(world.admin)
    for path in (f"{LIST}nights/", "/clusters/demo/tide-steps/"):
        page = client.get(path).content.decode()
        assert "No step yet" in page, path
    keep_steps(world)
    for path in (f"{LIST}nights/", "/clusters/demo/tide-steps/", "/clusters/demo/tide-steps/?plan=nights"):
        page = client.get(path).content.decode()
        assert "14 → <strong>20</strong>" in page, path
        assert "2026-03-03 18:00" in page
        assert "Refused by the cluster" in page
        assert "is set by kubectl-edit" in page
        assert "the plan says 6; inference used the rest" in page
    page = client.get("/clusters/demo/tide-steps/?answer=taken").content.decode()
    assert "maps-route-inference" in page
    assert "search-suggest-inference" not in page
    assert "No step matches" in client.get("/clusters/demo/tide-steps/?to=2026-03-01T00:00").content.decode()
    for bound in ("to=9999-12-31T23:59:59-23:59", "from=0001-01-01T00:00:00%2B23:59", "to=9999-12-31T00:00"):
        for path in ("tide-steps/", "sessions/", "reclaims/"):
            assert client.get(f"/clusters/demo/{path}?{bound}").status_code == 200
    rows = client.get("/clusters/demo/tide-steps/?format=csv").content.decode().splitlines()
    assert len(rows) == 3
    own = client_of(world.member).get("/clusters/demo/tide-steps/").content.decode()
    assert "search-suggest-inference" in own
    assert "maps-route-inference" not in own
    assert "nights" not in client_of(world.stranger).get("/clusters/demo/tide-steps/").content.decode()


def test_a_step_after_a_take_back_says_who_did_it_and_when_the_layer_opens_again(world):
    keep_steps(world)
    again = "2026-03-04T18:00:00+00:00"
    taken_back = [{"plan": "nights", "layer": "night", "by": "mei", "opens_next": again}]
    TideStep.objects.filter(queue__name="search-suggest-inference").update(layers=[], taken_back=taken_back)
    client = client_of(world.member)
    for path in (f"{LIST}nights/", "/clusters/demo/tide-steps/"):
        page = " ".join(client.get(path).content.decode().split())
        assert "night was taken back by mei" in page, path
        assert "It opens again at 2026-03-04 18:00:00 UTC." in page
        assert "none: the base holds" not in page
    head, row = client.get("/clusters/demo/tide-steps/?format=csv").content.decode().splitlines()
    told = dict(zip(head.split(","), row.split(","), strict=True))
    assert (told["layers"], told["taken_back"], told["taken_back_by"]) == ("", "nights: night", "mei")


def test_switching_off_and_deleting_are_reviewed_with_what_they_do(world):
    client = client_of(world.admin)
    layer = NIGHT | {"quota": {"maps-route-inference": {L40S: {"add": -1}}}}
    write_tide_plan(cluster=world.cluster, name="less", document={"enabled": True, "layers": [layer]}, actor="tests")
    off = client.post(f"{LIST}nights/switch/")
    objects = {one["name"]: one for one in client.get(off["Location"]).context["plan"]["objects"]}
    route = objects["maps-route-inference"]
    quotas = [json.loads(route[side]["metadata"]["annotations"][manifests.CARD_QUOTA]) for side in ("before", "after")]
    assert [quota[L40S] for quota in quotas] == [19, 13], "the other plan still holds"
    applied(client, off, "quiet")
    assert not TidePlan.objects.get(name="nights").enabled
    assert "It is off" in client.get(f"{LIST}nights/").content.decode()
    applied(client, client.post(f"{LIST}nights/delete/"), "over")
    assert not TidePlan.objects.filter(name="nights").exists()
    assert AuditEntry.objects.filter(action="tide_plan.delete", reason="over").count() == 1


def test_the_preview_sets_the_plan_against_the_past(world):
    queue = Queue.objects.get(name="maps-route-inference")
    UsageRollup.objects.filter(queue=queue).delete()
    monday = dt.datetime(2026, 2, 16, 20, tzinfo=dt.UTC)
    for week, used in enumerate((4000, 8000, 12000)):
        UsageRollup.objects.create(
            queue=queue, card=L40S, step_seconds=3600, at=monday + dt.timedelta(weeks=week), quota=14000,
            allocated_mean=used, allocated_max=used + 500,
        )  # fmt: skip
    client = client_of(world.admin)
    address = f"{LIST}nights/preview/?card=maps-route-inference|{L40S}"
    rows = client.get(f"{address}&format=csv").content.decode().splitlines()
    assert len(rows) == 169
    assert rows[21] == "Monday 20:00,14,20,8.0,11.2,12.5"
    assert rows[1].startswith("Monday 00:00,14,20,,,") or rows[1].startswith("Monday 00:00,14,14,,,")
    figure = client.get(address).json()
    assert len(figure["data"]) == 5
    assert client_of(world.member).get(address).json()["data"], "a member gets the first of their own"
    assert "<table" in client.get(f"{address}&format=table").content.decode()


def test_a_week_with_a_change_of_clocks_is_laid_out_by_the_moments_that_pass():
    document = {"time_zone": "Europe/Berlin", "layers": [NIGHT | {"quota": {"q": {"c": {"add": 1}}}}]}
    plan = tide.plan_of("p", document)
    now = dt.datetime(2026, 3, 25, 12, tzinfo=dt.UTC)
    week = week_of([plan], plan, {"q": {"c": 1}}, {}, text="2026-W13", now=now)
    assert [day.x for day in week.days][:2] == [0, pytest.approx(24 / 167 * 100, abs=0.01)]
    assert sum(band.width for band in week.rows[0].bands) == pytest.approx(100, abs=0.1)


def test_a_plan_and_its_form_are_the_same():
    document = {
        "enabled": True, "position": 2, "time_zone": "UTC", "exceptions": {"2026-10-01": "none"},
        "layers": [NIGHT | {"end": "24:00"}],
    }  # fmt: skip
    assert PlanForm.of("p", document, 1).document() == document
    assert PlanForm.read(QueryDict("name=x&version=junk")).version == 0


def test_a_queue_says_what_plans_make_of_its_quota(world):
    Queue.objects.filter(name="maps-route-inference").update(tide={L40S: 20})
    page = client_of(world.admin).get("/clusters/demo/queues/maps-route-inference/").content.decode()
    assert "20 instead of 14" in page
    rows = client_of(world.admin).get("/clusters/demo/queues/?format=csv").content.decode().splitlines()
    row = next(row for row in rows if row.startswith("maps-route-inference,"))
    assert ",20.0,14," in row


@pytest.mark.parametrize("who", ["admin", "member"])
def test_the_pages_cost_few_queries(world, who):
    client = client_of(getattr(world, who))
    client.get(LIST)
    for path in (LIST, f"{LIST}nights/", "/audit/"):
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        # Where inference keeps more than an open plan leaves it, the whole tree is read for what others then wait for.
        # The page of a plan reads what its queues use, and while a layer is open who waits for their cards.
        assert len(queries) <= (21 if path == LIST else 11), [query["sql"][:120] for query in queries]


def test_a_plan_that_waits_for_approval_is_said_as_every_change_that_waits(world):
    client = client_of(world.admin)
    act(client, drafted(client, {"rules/cluster": {"approval_required": True}}), "apply", reason="x", when="now")
    change = applied(client, client.post("/clusters/demo/new/tide-plan/", sent()))
    assert change.state == ChangeState.WAITING
    assert not TidePlan.objects.filter(name="days").exists()
