"""Each list and detail: its fields, and that each reader sees exactly what is theirs."""

import datetime as dt

import pytest
from django.utils import timezone

from tests.api.cast import A100, H200, NOON
from tidesched_web.scheduling.models import Session
from tidesched_web.workloads.models import Gang, GangRemedy, ReasonFigures
from tidesched_web.workloads.remedies import basis

READERS = {
    # list: {reader: what the list shows, by display}
    "clusters": {
        "owner": ["East"],
        "rival": ["East"],
        "stranger": ["West"],
        "auditor": ["East", "West"],
        "admin": ["East", "West"],
    },
    "tenants": {
        "owner": ["acme"],
        "rival": ["rival"],
        "stranger": ["far"],
        "auditor": ["acme", "rival", "far"],
        "admin": ["acme", "rival", "far"],
    },
    "projects": {"teammate": ["acme-chat"], "stranger": ["far-chat"], "admin": ["acme-chat", "rival-chat", "far-chat"]},
    "queues": {
        "owner": ["acme-online", "acme-train"],
        "rival": ["rival-online", "rival-train"],
        "stranger": ["far-online", "far-train"],
    },
    "nodes": {"owner": ["east-0", "east-1"], "stranger": ["west-0", "west-1"]},
    "card-types": {"owner": [H200, A100], "admin": [H200, A100, H200, A100]},
    "priority-classes": {"rival": ["pc-high", "pc-low", "pc-medium", "pc-normal"]},
    "gangs": {
        "owner": ["acme/fit", "acme/web"],
        "rival": ["rival/tune"],
        "stranger": ["far/remote"],
        "auditor": ["far/remote", "rival/tune", "acme/fit", "acme/web"],
    },
    "sessions": {
        "owner": ["Session 5", "Session 4", "Session 3", "Session 2", "Session 1"],
        "stranger": [],
    },
    "reclaims": {
        "owner": ["acme/web takes from acme/old, rival/tune"],
        "rival": ["acme/web takes from acme/old, rival/tune"],
        "stranger": [],
    },
}


@pytest.mark.parametrize(("path", "reader"), [(path, reader) for path, row in READERS.items() for reader in row])
def test_a_list_shows_what_its_reader_may_see(world, path, reader):
    shown = world.client(reader).read(f"{path}/")
    assert set(shown) == {"results", "next", "previous"}
    assert [row["display"] for row in shown["results"]] == READERS[path][reader]


def test_a_details_address_is_in_its_list_and_out_of_sight_it_is_a_404(world):
    for path in ("clusters", "tenants", "projects", "queues", "nodes", "gangs", "reclaims"):
        row = world.client("owner").read(f"{path}/")["results"][0]
        assert world.client("owner").get(row["url"]).status_code == 200, path
        hidden = world.client("stranger").get(row["url"])
        assert (hidden.status_code, hidden.json()["code"]) == (404, "not_found"), path


def test_a_queue_is_as_in_the_contract(world):
    queue = world.client("owner").read("queues/", name="acme-train")["results"][0]
    assert set(queue) == {
        "id", "url", "display", "name", "cluster", "service_type", "tenant", "project", "business_line", "weight",
        "priority", "reclaimable", "cpu_milli", "memory_bytes", "state", "sync_state", "sync_error", "card_quota",
        "effective_quota", "usage", "version",
    }  # fmt: skip
    assert queue["card_quota"] == {H200: 8}
    assert (queue["cluster"]["slug"], queue["tenant"]["slug"], queue["project"]) == ("east", "acme", None)
    assert (queue["priority"], queue["reclaimable"], queue["memory_bytes"]) == (20000, True, None)
    # 10 in training's use, 16 - 12 = 4 its own: 6 borrowed, of which 6/10 by this queue.
    figures = {"quota": 8.0, "allocated": 6.0, "inqueue": 1.0, "elastic": 0.5, "borrowed": 3.6, "lent": 0.0}
    assert queue["usage"] == {H200: figures}
    online = world.client("owner").read("queues/", name="acme-online")["results"][0]
    assert online["memory_bytes"] == 2**30
    assert online["usage"][H200]["borrowed"] == 0


def test_the_index_names_every_collection(world):
    index = world.client("anonymous").get("/api/v1/").json()
    others = {"business-lines", "grants", "jobs", "quota-changes", "tide-plans", "usage", "audit", "members", "tokens"}
    others |= {"drift", "alerts", "users"}
    assert {*READERS, *others, "schema", "docs"} == set(index)
    for name in READERS:
        assert world.client("owner").get(index[name]).status_code == 200
    assert world.client("owner").get("/api/v1/", {"x": "1"}).json()["code"] == "unknown_parameter"


def test_a_name_that_means_nothing_to_the_caller_is_an_error(world):
    owner = world.client("owner")
    for path, name in (
        ("queues", "cluster"), ("queues", "tenant"), ("queues", "project"), ("queues", "business_line"),
        ("gangs", "queue"), ("gangs", "cluster"), ("nodes", "cluster"), ("card-types", "cluster"),
        ("priority-classes", "cluster"), ("sessions", "cluster"), ("reclaims", "cluster"), ("projects", "tenant"),
        ("members", "tenant"),
    ):  # fmt: skip
        response = owner.get(f"/api/v1/{path}/", {name: "nope"})
        assert response.status_code == 400, (path, name)
        assert response.json()["errors"][0]["pointer"] == f"/{name}"
    hidden, unknown = (owner.get("/api/v1/queues/", {"cluster": slug}).json() for slug in ("west", "nope"))
    assert (hidden["code"], hidden["detail"].replace("west", "nope")) == (unknown["code"], unknown["detail"])
    assert owner.read("queues/", cluster="999999")["results"] == []
    assert owner.read("queues/", cluster="east", name="no-such")["results"] == []


def test_queue_and_tenant_carry_a_strong_etag(world):
    for path, row in (("queues", world.queues["acme-online"]), ("tenants", world.tenants["acme"])):
        row.refresh_from_db()
        response = world.client("owner").get(f"/api/v1/{path}/{row.pk}/")
        assert response.headers["ETag"] == f'"{row.version}"'
    assert world.tenants["acme"].version == 2


def test_a_tenants_quota_is_per_cluster_and_service_type(world):
    tenant = world.client("owner").read("tenants/", slug="acme")["results"][0]
    assert tenant["quota"] == [
        {
            "cluster": world.clusters["east"].pk,
            "service_type": "inference",
            "cards": {A100: 2, H200: 8},
            "cpu_milli": None,
            "memory_bytes": None,
        }
    ]
    assert [project["slug"] for project in tenant["projects"]] == ["acme-chat"]
    assert [line["slug"] for line in tenant["business_lines"]] == ["acme-research"]


def test_a_gang_says_why_it_waits_and_keeps_other_tenants_names_to_itself(world):
    gang = world.client("owner").read("gangs/", name="web")["results"][0]
    assert {
        "namespace", "name", "queue", "service_type", "priority", "min_member", "ready", "phase", "cards",
        "waiting_since", "position", "reason",
    } <= set(gang)  # fmt: skip
    assert gang["reason"]["numbers"]["holders"] == [
        {"gang": None, "queue": None, "amount": 4.0},
        {"gang": "acme/fit", "queue": "acme-train", "amount": 2.0},
    ]
    assert "rival" not in gang["reason"]["message"]
    seen_by_all = world.client("auditor").read("gangs/", name="web")["results"][0]
    assert seen_by_all["reason"]["numbers"]["holders"][0]["gang"] == "rival/tune"


def test_a_gang_has_pods_and_a_timeline(world):
    pk = world.gangs["web"].pk
    pods = world.client("teammate").read(f"gangs/{pk}/pods/")["results"]
    assert [(pod["name"], pod["card"], pod["cards"]) for pod in pods] == [("web-0", H200, 2.0), ("web-1", H200, 2.0)]
    steps = world.client("teammate").read(f"gangs/{pk}/timeline/")["results"]
    assert [step["kind"] for step in steps] == ["submitted", "reason"]
    assert world.client("rival").get(f"/api/v1/gangs/{pk}/pods/").status_code == 404


def test_a_reclaim_shows_of_the_other_side_only_the_name(world):
    path = f"reclaims/{world.reclaim.pk}/"
    everything = world.client("auditor").read(path)
    assert {"reclaimer", "queue", "action", "needed", "freed", "victims", "rule", "votes", "refused"} <= set(everything)
    assert {"id", "cluster", "session", "at", "source", "audit_entry"} <= set(everything)
    assert [victim["queue"] for victim in everything["victims"]] == ["acme-train", "rival-train"]

    taker = world.client("owner").read(path)
    assert taker["queue"] == "acme-online"
    assert taker["freed"] is None, "less the own victims it would be what the other one lost"
    own, other = taker["victims"]
    assert (own["queue"], own["cards"]) == ("acme-train", {H200: 2})
    assert other == {
        "gang": "rival/tune", "queue": None, "pods": None, "cards": None, "work_lost_card_seconds": None,
        "priority": None, "queue_priority": None, "restarting_pods": None, "ended_pods": None,
        "last_restart": None,
    }  # fmt: skip
    assert taker["refused"] == [{"gang": "acme/fit", "rule": "higher priority"}]

    loser = world.client("rival").read(path)
    assert (loser["reclaimer"], loser["queue"], loser["needed"], loser["freed"]) == ("acme/web", None, None, None)
    assert (loser["votes"], loser["refused"], loser["work_lost_card_seconds"]) == ([], [], None)
    assert [victim["queue"] for victim in loser["victims"]] == [None, "rival-train"]


def test_reclaims_are_found_by_a_queue_on_either_side(world):
    client = world.client("admin")
    for queue in ("acme-online", "rival-train", str(world.queues["rival-train"].pk)):
        assert len(client.read("reclaims/", queue=queue)["results"]) == 1
    assert client.read("reclaims/", queue="far-train")["results"] == []
    assert len(client.read("reclaims/", victim="rival/tune")["results"]) == 1


def test_who_took_these_cards_at_that_moment_can_be_asked(world, subtests):
    """By both clocks, by the card, and by the queue and tenant of either side."""
    east, wall = world.reclaim.cluster, world.reclaim.wall_at
    hour = dt.timedelta(hours=1)
    for found, asked in {
        1: [
            {"from": NOON.isoformat(), "to": (NOON + hour).isoformat()},
            {"wall_from": wall.isoformat(), "wall_to": (wall + hour).isoformat()},
            {"gainer_tenant": "acme"}, {"gainer_tenant": str(world.tenants["acme"].pk)}, {"loser_tenant": "acme"},
            {"loser_tenant": "rival"}, {"tenant": "rival"}, {"gainer_queue": "acme-online"},
            {"loser_queue": "rival-train"}, {"card": H200},
            {"cluster": east.slug, "loser_tenant": "rival", "card": H200, "victim": "rival/tune"},
        ],
        0: [
            {"from": (NOON + hour).isoformat()}, {"wall_to": wall.isoformat()}, {"gainer_tenant": "rival"},
            {"loser_tenant": "far"}, {"tenant": "absent"}, {"gainer_queue": "rival-train"},
            {"loser_queue": "acme-online"}, {"card": A100},
        ],
    }.items():  # fmt: skip
        for query in asked:
            with subtests.test(query=query):
                assert len(world.client("admin").read("reclaims/", **query)["results"]) == found
    for query in ({"gainer": "acme"}, {"wall_from": "yesterday"}, {"from": "x"}, {"card": "a\0"}):
        with subtests.test(query=query):
            assert world.client("admin").get("/api/v1/reclaims/", query).status_code == 400


def test_a_filter_finds_nothing_by_what_is_hidden(world, subtests):
    """Rival lost to acme and sees the reclaim, but neither acme's queue nor what it needed: no filter confirms them."""
    rival = world.client("rival")
    assert len(rival.read("reclaims/", loser_tenant="rival", card=H200)["results"]) == 1
    for name, hidden in {
        "queue": "acme-online", "gainer_queue": "acme-online", "loser_queue": "acme-train", "tenant": "acme",
        "gainer_tenant": str(world.tenants["acme"].pk), "loser_tenant": "acme", "card": A100,
    }.items():  # fmt: skip
        world.reclaim.needed["cards"][A100] = 1
        world.reclaim.save()
        with subtests.test(name=name):
            said = rival.read("reclaims/", **{name: hidden})
            assert said == rival.read("reclaims/", **{name: "absent"})
            assert said["results"] == []


def test_a_members_session_hides_errors_and_other_tenants_decisions(world):
    path = f"sessions/{world.session.pk}/"
    assert world.client("owner").read(path)["error"] == ""
    assert world.client("admin").read(path)["error"] == "rival/tune broke something"
    assert world.client("owner").read(path)["timings_ms"] == {"reclaim": 1.5}
    Session.objects.filter(pk=world.session.pk).update(counts={"binds": 1, "taken_back": ["rival/tune"]})
    assert world.client("owner").read(path)["counts"] == {"binds": 1}
    assert world.client("admin").read(path)["counts"]["taken_back"] == ["rival/tune"]
    own = world.client("owner").read(f"{path}decisions/")["results"]
    assert [decision["gang"] for decision in own] == ["acme/web"]
    assert len(world.client("auditor").read(f"{path}decisions/")["results"]) == 2


def test_a_clusters_policy_and_clock_are_shown_and_its_credentials_never(world, caplog):
    pk = world.clusters["east"].pk
    policy = world.client("owner").read(f"clusters/{pk}/policy/")
    assert policy["text"].startswith("actions:")
    for reader in ("admin", "auditor", "owner"):
        body = world.client(reader).get(f"/api/v1/clusters/{pk}/").content.decode()
        assert "the-secret" not in body
        assert "credential" not in body.lower()
        assert '"rate":144.0' in body
    assert "the-secret" not in caplog.text


def test_pages_follow_each_other_both_ways_without_gap_or_repetition(world):
    client = world.client("owner")
    seen, address = [], "/api/v1/sessions/?limit=2"
    while address:
        page = client.get(address).json()
        seen.append([row["number"] for row in page["results"]])
        last, address = page, page["next"]
    assert seen == [[5, 4], [3, 2], [1]]
    back = client.get(last["previous"]).json()
    assert [row["number"] for row in back["results"]] == [3, 2]
    first = client.get(back["previous"]).json()
    assert ([row["number"] for row in first["results"]], first["previous"]) == ([5, 4], None)
    Session.objects.filter(number=4).delete()  # a page goes on where it was, whatever went meanwhile
    assert [row["number"] for row in client.get(first["next"]).json()["results"]] == [3, 2]


def test_count_only_when_asked_for(world):
    assert world.client("admin").read("queues/", count="exact", limit=1)["count"] == 6


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("queues/", "colour=blue", "unknown_parameter"),
        ("queues/{queue}/", "limit=1", "unknown_parameter"),
        ("queues/", "limit=0", "invalid"),
        ("queues/", "limit=1001", "invalid"),
        ("queues/", "limit=ten", "invalid"),
        ("queues/", "count=about", "invalid"),
        ("queues/", "cursor=bm9wZQ", "invalid_cursor"),
        ("queues/", "service_type=batch", "invalid"),
        ("queues/", "name=a&name=b", "invalid"),
        ("sessions/", "number=one", "invalid"),
        ("usage/", "card=x", "against_rules"),
        ("usage/", "queue=acme-online&from=yesterday", "invalid"),
        ("usage/", "queue=acme-online&step=never", "invalid"),
        ("usage/", "queue=acme-online&step=1", "too_many_points"),
        ("audit/", "format=xml", "invalid"),
    ],
)
def test_a_bad_parameter_is_a_400_that_names_it(world, path, query, code):
    queue = world.queues["acme-train"].pk
    response = world.client("admin").get(f"/api/v1/{path.format(queue=queue)}?{query}")
    problem = response.json()
    assert (response.status_code, problem["code"]) == (400, code)
    name = query.rpartition("&")[2].partition("=")[0]
    assert problem["errors"][0]["pointer"] == f"/{'cluster' if query == 'card=x' else name}"


def test_an_unknown_parameter_is_answered_with_the_known_ones(world):
    detail = world.client("owner").get("/api/v1/tenants/?slag=acme").json()["detail"]
    assert detail == "Unknown parameter 'slag'. Known here: count, cursor, limit, name, slug."


@pytest.mark.parametrize(
    ("path", "name"),
    [("gangs/", "waiting"), ("gangs/", "gone"), ("nodes/", "gone"), ("users/", "active"), ("tide-plans/", "enabled")],
)
@pytest.mark.parametrize("value", ["maybe", "", "2"])
def test_a_boolean_filter_takes_true_and_false_only(world, path, name, value):
    answer = world.client("admin").get(f"/api/v1/{path}", {name: value})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == f"/{name}"
    assert f"{value!r}: true or false is meant." in answer.json()["detail"]
    for right in ("true", "false"):
        assert world.client("admin").get(f"/api/v1/{path}", {name: right}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "tenants/?slug=acme&slug=rival", "usage/?queue={queue}&queue=1",
        "sessions/{session}/decisions/?limit=1&limit=2",
        "clusters/{cluster}/tree/?format=json&format=yaml", "?a=1&a=2", "audit/?q=1&q=2",
    ],
)  # fmt: skip
def test_a_parameter_that_is_there_twice_is_refused_everywhere(world, path):
    keys = {
        "queue": world.queues["acme-online"].pk, "session": world.session.pk, "cluster": world.clusters["east"].pk,
    }  # fmt: skip
    answer = world.client("admin").get(f"/api/v1/{path.format(**keys)}")
    assert answer.status_code == 400, answer.content
    if not path.startswith("?"):
        assert "is given 2 times" in answer.json()["detail"]


def test_a_new_change_is_called_by_its_text(world):
    body = {"cluster": "east", "edits": {"queue/acme-online": {"card_quota": {"NVIDIA-H200": 5}}}, "reason": "drill"}
    made = world.client("admin").send("quota-changes/", body).json()
    assert "method" not in made["display"]
    assert world.client("admin").read("quota-changes/")["results"][0]["display"] == made["display"]


@pytest.mark.parametrize(("remedy", "starts"), [(None, None), ({"change": "gang_ends", "gang": "rival/tune"}, True)])
def test_what_was_worked_out_says_of_no_gang_that_it_starts_without_a_remedy(world, remedy, starts):
    gang, now = world.gangs["web"], timezone.now()
    Gang.objects.filter(name="tune").update(bound=1, submitted_at=now)
    GangRemedy.objects.create(
        gang=gang, basis=basis(gang.reason_code, gang.reason_numbers), remedy=remedy, session_id=1, number=1,
        at=now, worked_out_at=now,
    )  # fmt: skip
    (row,) = world.client("admin").read("gangs/", name="web")["results"]
    assert row["reason"]["remedy_worked_out"]["starts"] is starts
    assert (row["reason"]["remedy"] is None) is (remedy is None)
    assert moment(row["reason"]["remedy_worked_out"]["session_at"]) == now


@pytest.mark.parametrize(("phase", "left"), [("Pending", True), ("Completed", False)])
def test_of_a_gang_that_is_over_it_is_said_whether_it_left_without_running(world, phase, left):
    gang = world.gangs["web"]
    over = {"state": "finished", "gone_at": timezone.now(), "started_at": None, "bound": 0}
    type(gang).objects.filter(pk=gang.pk).update(phase=phase, **over)
    (row,) = world.client("admin").read("gangs/", name="web", gone="true")["results"]
    assert (row["state"], row["left_without_running"]) == ("finished", left)


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def test_figures_of_a_reason_say_of_which_session_they_are(world):
    (row,) = world.client("owner").read("gangs/", name="web")["results"]
    assert row["reason"]["figures_of"] is None, "no session has said so"
    gang = world.gangs["web"]
    ReasonFigures.objects.create(cluster=gang.cluster, number=7, at=NOON)
    for path in ("gangs/", f"gangs/{gang.pk}/"):
        found = world.client("owner").read(path, **({"name": "web"} if path == "gangs/" else {}))
        reason = (found["results"][0] if path == "gangs/" else found)["reason"]
        assert (reason["figures_of"]["session"], moment(reason["figures_of"]["at"])) == (7, NOON)


def test_until_when_an_evicted_gang_is_spared_is_told_where_tidesched_evicts(world):
    gang = world.gangs["web"]
    path = f"gangs/{gang.pk}/"
    assert world.client("owner").read(path)["spared_until"] is None
    type(gang).objects.filter(pk=gang.pk).update(spared_until=NOON)
    for mode, said in (("schedule", True), ("observe", False)):
        type(gang.cluster).objects.filter(pk=gang.cluster_id).update(mode=mode)
        found = world.client("owner").read(path)["spared_until"]
        assert (found is not None and moment(found) == NOON) is said
    assert world.client("rival").get(f"/api/v1/{path}").status_code == 404


@pytest.mark.parametrize("path", ["audit/", "audit/heads/"])
def test_an_export_refuses_what_a_page_refuses(world, path):
    client = world.client("admin")
    for wrong in ({"limit": "0"}, {"limit": "116130224"}, {"cursor": "W"}, {"count": ""}):
        assert client.get(f"/api/v1/{path}", {"format": "ndjson", **wrong}).status_code == 400, wrong
    assert client.get(f"/api/v1/{path}", {"format": "ndjson", "limit": "1"}).status_code == 200
