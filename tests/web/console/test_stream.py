"""The stream of events: who may listen, to what, and where it goes on."""

from __future__ import annotations

import asyncio
import json

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import AsyncClient, Client

from tests.waiting import PATIENCE, until_async
from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Membership, Project, Scope, Tenant, User
from tidesched_web.accounts.services import create_token
from tidesched_web.accounts.stream_selectors import NAMED_TO
from tidesched_web.api import stream
from tidesched_web.api.urls import router
from tidesched_web.api.v1 import scheduling
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live, live_hub
from tidesched_web.common.live import publish
from tidesched_web.common.models import ServiceType
from tidesched_web.jobs.services import cancel, enqueue
from tidesched_web.quota.events import about_queue
from tidesched_web.quota.models import Queue

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people() -> dict[str, User]:
    """Two clusters; Mei's tenant has a queue in the first."""
    admin, _auditor, member, _stranger, newcomer = story.people()
    first, _second = story.empty_cluster("first"), story.empty_cluster("second")
    tenant = Tenant.objects.create(slug="search", name="Search")
    project = Project.objects.create(tenant=tenant, slug="rank", name="Rank")
    Queue.objects.create(cluster=first, name="rank", service_type=ServiceType.INFERENCE, tenant=tenant, project=project)
    Membership.objects.create(user=member, tenant=tenant)
    return {"admin": admin, "member": member, "newcomer": newcomer}


async def _hear(path: str, publish: list[tuple[str, int | None]], lines: int, **how: object) -> list[str]:
    """Open the stream, publish, and read so many events."""
    client = AsyncClient()
    if user := how.pop("user", None):
        await client.aforce_login(user)
    answer = await client.get(path, headers=how.pop("headers", {}))
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/event-stream"
    parts = answer.streaming_content
    assert b"connected" in await anext(parts)
    waits = asyncio.ensure_future(anext(parts))
    await until_async(lambda: live_hub.hub().listeners)
    for topic, cluster in publish:
        await sync_to_async(live.publish)(topic, 7, 3, cluster_id=cluster)
    found = _events(await asyncio.wait_for(waits, PATIENCE))
    while len(found) < lines:
        found += _events(await asyncio.wait_for(anext(parts), PATIENCE))
    await parts.aclose()
    return found


def _events(text: bytes) -> list[str]:
    """One text for each event of a message."""
    return [part for part in text.decode().split("\n\n") if part]


def hear(path: str, publish: list[tuple[str, int | None]], lines: int = 1, **how: object) -> list[str]:
    return async_to_sync(_hear)(path, publish, lines, **how)


def ids(name: str) -> int:
    return Cluster.objects.get(slug=name).pk


def test_a_reader_hears_of_clusters_in_sight_only(people) -> None:
    first, second = ids("first"), ids("second")
    told = [("sessions", second), ("sessions", first), ("gangs", second), ("clusters", None)]
    heard = hear("/api/v1/stream", told, 2, user=people["member"])
    assert f'"cluster":{first}' in heard[0]
    assert '"topic":"clusters"' in heard[1]
    assert len(hear("/api/v1/stream", told, 4, user=people["admin"])) == 4


def test_topics_are_chosen(people) -> None:
    first = ids("first")
    heard = hear("/api/v1/stream?topics=gangs", [("sessions", first), ("gangs", first)], user=people["admin"])
    assert "event: change\n" in heard[0]
    assert '"topic":"gangs","id":"7","version":"3"' in heard[0]


def test_it_goes_on_after_the_last_event(people) -> None:
    first = ids("first")
    heard = hear("/api/v1/stream", [("sessions", first)], user=people["admin"])
    place = heard[0].partition("\n")[0].removeprefix("id: ")
    live.publish("gangs", 1, cluster_id=first)
    again = hear("/api/v1/stream", [], user=people["admin"], headers={"Last-Event-ID": place})
    assert '"topic":"gangs"' in again[0]


def test_what_happens_while_a_page_is_on_its_way_is_told(people) -> None:
    page = client_of(people["admin"]).get("/clusters/first/").content.decode()
    place = page.partition('data-after="')[2].partition('"')[0]
    live.publish("gangs", 2, cluster_id=ids("first"))
    heard = hear(f"/api/v1/stream?topics=gangs&after={place}", [], user=people["admin"])
    assert '"topic":"gangs","id":"2"' in heard[0]


@pytest.mark.parametrize("after", ["9223372036854775807-0", "99999999999999999999-0", "٣-٣", "1-1-1"])
def test_a_place_that_cannot_be_is_from_now_on(people, after) -> None:
    first = ids("first")
    live.publish("gangs", 2, cluster_id=first)
    heard = hear(f"/api/v1/stream?after={after}", [("queues", first)], user=people["admin"])
    assert '"topic":"queues"' in heard[0]


def test_a_token_may_listen(people) -> None:
    _token, plain = create_token(user=people["member"], scopes=[Scope.CLUSTER_READ], actor="mei")
    first = ids("first")
    heard = hear("/api/v1/stream", [("usage", first)], headers={"Authorization": f"Bearer {plain}"})
    assert '"topic":"usage"' in heard[0]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
def test_a_stranger_hears_nothing(people, headers) -> None:
    answer = Client().get("/api/v1/stream", headers=headers)
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "https://tidesched.io/problems/not-authenticated"
    assert answer.json()["instance"] == "/api/v1/stream"


def test_unknown_topics_and_methods_are_refused(people) -> None:
    client = client_of(people["admin"])
    answer = client.get("/api/v1/stream?topics=gangs,secrets")
    assert answer.status_code == 400
    assert "secrets" in answer.json()["detail"]
    posted = client.post("/api/v1/stream")
    assert (posted.status_code, posted["Allow"], posted.json()["code"]) == (405, "GET", "method_not_allowed")
    assert client.get("/api/v1/stream?topic=gangs").json()["code"] == "unknown_parameter"
    for wrong in ("topics=", "topics=,", "topics=gangs&topics=jobs", "after=1-0&after=2-0"):
        refused = client.get(f"/api/v1/stream?{wrong}")
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid"), wrong
    with pytest.raises(ValueError, match="secrets"):
        live.publish("secrets", 1)


def test_an_event_names_its_object_and_what_changed_to_those_who_see_it(people) -> None:
    """A queue's name is for the members of its tenant; who shares the cluster hears only that a queue has changed."""
    cluster = Cluster.objects.get(slug="first")
    queue = Queue.objects.get(name="rank")
    other = Tenant.objects.create(slug="voice", name="Voice")
    theirs = Project.objects.create(tenant=other, slug="asr", name="Asr")
    Queue.objects.create(cluster=cluster, name="asr", service_type=ServiceType.INFERENCE, tenant=other, project=theirs)
    Membership.objects.create(user=people["newcomer"], tenant=other)

    def close() -> None:
        publish("queues", queue.pk, queue.version, cluster_id=queue.cluster_id, about=about_queue(queue, "update"))

    for who, sees in (("admin", True), ("member", True), ("newcomer", False)):
        heard = _said(hear_of(close, user=people[who]))
        assert (heard["topic"], heard["cluster"]) == ("queues", cluster.pk)
        if sees:
            assert (heard["kind"], heard["id"], heard["name"], heard["what"]) == (
                "queue", str(queue.pk), "rank", "update",
            )  # fmt: skip
        else:
            assert heard == {"topic": "queues", "id": "*", "version": "0", "cluster": cluster.pk}


@pytest.mark.parametrize(("scope", "named"), [(Scope.QUOTA_READ, True), (Scope.CLUSTER_READ, False)])
def test_a_token_hears_names_of_what_its_scopes_let_it_read(people, scope, named) -> None:
    _token, plain = create_token(user=people["member"], scopes=[scope], actor="mei")
    queue = Queue.objects.get(name="rank")

    def close() -> None:
        publish("queues", queue.pk, queue.version, cluster_id=queue.cluster_id, about=about_queue(queue, "update"))

    heard = _said(hear_of(close, headers={"Authorization": f"Bearer {plain}"}))
    assert heard["topic"] == "queues"
    assert heard.get("name") == ("rank" if named else None)
    assert (heard["id"] == "*") is not named


def test_a_topic_takes_the_scopes_of_its_objects() -> None:
    views = {prefix: view for prefix, view, _name in router.registry} | {"usage": scheduling.Usage}
    for topic in live.TOPICS:
        view = views["quota-changes" if topic == "changes" else topic]
        assert set(NAMED_TO[topic]) == set(view.scopes), topic


def test_a_job_is_named_to_its_owner_only(people) -> None:
    """And to platform admins, as in the list of jobs."""
    Membership.objects.create(user=people["newcomer"], tenant=Tenant.objects.get(slug="search"))

    def begin() -> None:
        first = Cluster.objects.get(slug="first")
        cancel(job=enqueue(kind="impact", owner=people["member"], actor="mei", params={}, cluster=first))

    for who, named in (("member", True), ("admin", True), ("newcomer", False)):
        heard = _said(hear_of(begin, user=people[who]))
        assert (heard["topic"], heard.get("kind")) == ("jobs", "job" if named else None)
        assert (heard["id"] == "*") is not named


def _said(event: str) -> dict:
    return json.loads(event.partition("data: ")[2])


def hear_of(act, **how: object) -> str:
    """The newest event after ``act``."""
    return async_to_sync(_hear_of)(act, **how)


async def _hear_of(act, user: User | None = None, headers: dict[str, str] | None = None) -> str:
    client = AsyncClient()
    if user is not None:
        await client.aforce_login(user)
    answer = await client.get("/api/v1/stream?topics=queues,jobs", headers=headers or {})
    parts = answer.streaming_content
    await anext(parts)
    waits = asyncio.ensure_future(anext(parts))
    await until_async(lambda: live_hub.hub().listeners)
    await sync_to_async(act)()
    found = _events(await asyncio.wait_for(waits, PATIENCE))
    await parts.aclose()
    return found[-1]


def test_what_is_written_for_one_reader_is_not_sent_to_another_who_may_see_less():
    about = live.About("queue", "secret-queue", "quota", tenants=frozenset({7}))
    batch = [live.Event("9-1", "queues", "41", "3", 1, about)]
    inside = live.Sight(clusters=frozenset({1}), tenants=frozenset({7}), user_id=1)
    outside = live.Sight(clusters=frozenset({1}), tenants=frozenset({8}), user_id=2)
    first = stream._changes(batch, inside)
    assert b"secret-queue" in first
    assert b"secret-queue" not in stream._changes(batch, outside)
    assert stream._changes(batch, inside) is first


def test_many_streams_are_written_to_less_often():
    assert live_hub.window_seconds(1) == live_hub.window_seconds(100) == live_hub.WINDOW_SECONDS
    assert live_hub.window_seconds(300) == 3 * live_hub.WINDOW_SECONDS
    assert live_hub.window_seconds(100_000) == live_hub.WINDOW_MOST_SECONDS
