"""What is hidden is answered as what is not there: in the same words, but for the name that was sent."""

import pytest
from django.db import transaction

from tidesched_web.scheduling.models import ReclaimVictim

ABSENT = "nowhere-at-all"


def answers(client, method, path, body, *names):
    """The answers with each of the names in the place of ``@``, in which the name itself is a blank."""
    found = []
    for name in names:
        with transaction.atomic():
            if method == "get":
                answer = client.get(f"/api/v1/{path.replace('@', name)}")
            else:
                answer = client.send(path.replace("@", name), body(name))
            transaction.set_rollback(True)
        said = answer.json()
        said.pop("request_id", None)
        found.append((answer.status_code, str(said).replace(name, "@")))
    return found


def differs(found):
    return len(set(found)) != 1


@pytest.mark.parametrize(
    "edits",
    [
        lambda name: {f"queue/{name}": None},
        lambda name: {f"queue/{name}": {"weight": 2}},
        lambda name: {f"grant/rival/{name}": None},
        lambda name: {f"grant/acme/{name}": {}},
        lambda name: {f"project/{name}/chat": None},
    ],
)
@pytest.mark.parametrize("dry", ["", "?dry_run=true"])
def test_edits_of_what_is_hidden_are_answered_as_edits_of_nothing(world, edits, dry):
    body = lambda name: {"cluster": "east", "edits": edits(name), "reason": "drill"}  # noqa: E731
    for hidden in ("rival-online", "rival-train"):
        found = answers(world.client("owner"), "post", f"quota-changes/{dry}", body, hidden, ABSENT)
        assert not differs(found), found
        assert "rival-chat" not in str(found)
        assert "rival-research" not in str(found)


@pytest.mark.parametrize(
    "path",
    [
        "reclaims/?queue=@",
        "reclaims/?queue=@&count=exact",
        "reclaims/?loser_queue=@&count=exact",
        "reclaims/?gainer_queue=@&count=exact",
        "gangs/?queue=@",
        "queues/?name=@&count=exact",
        "grants/?queue=@",
        "usage/?queue=@",
    ],
)
def test_filters_by_a_hidden_queue_find_what_filters_by_no_queue_find(world, path):
    found = answers(world.client("owner"), "get", path, None, "rival-train", ABSENT)
    assert not differs(found), found


@pytest.mark.parametrize(
    "path",
    ["audit/?tenant=@&count=exact", "reclaims/?loser_tenant=@&count=exact", "queues/?tenant=@", "members/?tenant=@"],
)
def test_filters_by_a_foreign_tenant_find_what_filters_by_no_tenant_find(world, path):
    foreign = str(world.tenants["rival"].pk)
    found = answers(world.client("owner"), "get", path, None, foreign, "987654321")
    assert [status for status, _said in found] == [200, 200]
    assert [len(said.split("'id'")) for _status, said in found] == [1, 1]
    counts = {said.partition("'count': ")[2][:2] for _status, said in found}
    assert len(counts) == 1


def test_what_was_freed_is_not_told_where_it_is_what_another_tenants_gang_lost(world):
    """The reclaim took from rival and from acme; with one victim the sum would be what rival's gang lost."""
    path = f"reclaims/{world.reclaim.pk}/"
    for victims in (2, 1):
        assert world.client("admin").read(path)["freed"]["cards"] == {"NVIDIA-H200": 4}
        shown = world.client("owner").read(path)
        assert len(shown["victims"]) == victims
        assert shown["freed"] is None
        assert {victim["gang"]: victim["cards"] for victim in shown["victims"]}["rival/tune"] is None
        ReclaimVictim.objects.filter(reclaim=world.reclaim, gang="acme/old").delete()


def test_a_detail_out_of_sight_is_answered_as_one_that_is_not_there(world):
    client = world.client("owner")
    rival = world.queues["rival-online"]
    for collection, pk in (("queues", rival.pk), ("projects", rival.project_id), ("tenants", rival.tenant_id)):
        found = answers(client, "get", f"{collection}/@/", None, str(pk), "987654321")
        assert [status for status, _said in found] == [404, 404]
        assert not differs(found)
