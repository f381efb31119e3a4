"""Rows as documents: the same as the framework's own, for each reader, and while another answer is made."""

from __future__ import annotations

import pytest

from tests.api.story import Story
from tests.matrix.stage import Route, address, routes
from tidesched_web.api import rows, views
from tidesched_web.api.v1.serializers.workloads import GangDocument


def _lists() -> list[Route]:
    """Lists and details of the API that go through `rows.documents`."""
    names = [route for route in routes() if route.name.startswith("api:") and "get" in route.methods]
    return [route for route in names if route.name.endswith(("-list", "-detail", "-pods", "-timeline"))]


def _steady(found):
    """Without the clock of a cluster, which goes on."""
    return [{name: value for name, value in one.items() if name != "clock"} for one in found]


def test_each_document_is_the_one_that_the_framework_makes(db, settings, monkeypatch):
    settings.API_REQUESTS_PER_MINUTE = 0
    made, compared = rows.documents, set()

    def both(kind, found, context):
        found = list(found)
        mine = made(kind, found, context)
        assert _steady(mine) == _steady(kind(found, many=True, context=context).data), kind
        compared.update([kind] if found else [])
        return mine

    monkeypatch.setattr(views, "documents", both)
    story = Story()
    for caller in ("platform-admin", "tenant-admin", "platform-admin"):
        for route in _lists():
            answer = story.client(caller).get(address(story, route))
            assert answer.status_code in (200, 403, 404), route.name
    assert len(compared) >= 20


@pytest.fixture
def page(world):
    """The gangs that one of the cast sees; holders in queues of others come without name."""

    def shown(reader):
        return world.client(reader).read("gangs/", name="web")["results"]

    return shown


def test_a_kept_serializer_says_nothing_of_who_asked_before(page):
    owners = page("owner")
    everything = page("admin")
    assert owners != everything
    assert page("owner") == owners
    assert page("admin") == everything
    kept = rows._kept.__dict__["serializers"]
    assert GangDocument in kept
    assert [kind for kind, serializer in kept.items() if serializer._context] == [], "a request is kept with them"


def test_an_answer_inside_of_another_has_a_serializer_of_its_own(world, monkeypatch):
    contexts, seen = [], []
    make = views.documents

    def noted(kind, found, context):
        contexts.append((kind, list(found), context))
        return make(kind, contexts[-1][1], context)

    monkeypatch.setattr(views, "documents", noted)
    world.client("owner").read("gangs/")
    world.client("admin").read("gangs/")
    (kind, owners, of_owner), (_kind, admins, of_admin) = [one for one in contexts if issubclass(one[0], GangDocument)]

    def while_another_comes():
        for row in owners:
            seen.extend(make(kind, admins, of_admin))
            yield row

    assert make(kind, while_another_comes(), of_owner) == make(kind, owners, of_owner)
    assert seen == len(owners) * make(kind, admins, of_admin)
