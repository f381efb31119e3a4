"""What one account can pile up ends: each refusal names the number, and what makes room."""

from __future__ import annotations

from tests.api.cast import H200
from tests.api.test_quota_changes import EDITS, act, drafted
from tidesched_web.changes.models import ChangeRevision
from tidesched_web.clusters.models import Cluster
from tidesched_web.jobs import services as jobs
from tidesched_web.jobs.models import Job
from tidesched_web.quota.models import Queue

TOKEN = {"scopes": ["quota:read"]}


def said(answer):
    body = answer.json()
    return answer.status_code, body.get("code"), body.get("limit")


def test_live_tokens_of_one_account(world, settings):
    settings.KEPT_TOKENS = 2
    owner = world.client("owner")
    made = [owner.send("tokens/", TOKEN) for _ in range(3)]
    assert [answer.status_code for answer in made] == [201, 201, 409]
    assert said(made[2]) == (409, "too_many_kept", 2)
    assert "2 live tokens" in made[2].json()["detail"]
    page = owner.post("/profile/tokens/", {"name": "x", "scopes": ["quota:read"], "expires": "30d"})
    assert (page.status_code, "2 live tokens" in page.content.decode()) == (400, True)
    for token in made[:2]:
        assert owner.change("DELETE", token.json()["url"]).status_code == 204
    assert [owner.send("tokens/", TOKEN).status_code for _ in range(2)] == [201, 201]
    assert world.client("teammate").send("tokens/", TOKEN).status_code == 201


def test_open_changes_of_one_account(world, settings):
    settings.KEPT_OPEN_CHANGES = 2
    owner, queue = world.client("owner"), Queue.objects.get(name="acme-online")
    first, _second = (drafted(owner) for _ in range(2))
    body = {"cluster": "east", "edits": EDITS, "reason": "x"}
    assert said(owner.send("quota-changes/", body)) == (409, "too_many_kept", 2)
    # What is written at once does not stay open; what waits for an approval does.
    weight = {"cpu_milli": 31_000, "reason": "less"}
    assert owner.change("PATCH", f"queues/{queue.pk}/", weight, If_Match="*").status_code == 200
    Cluster.objects.update(approval_required=True)
    weight["cpu_milli"] = 30_000
    waits = owner.change("PATCH", f"queues/{queue.pk}/", weight, If_Match="*")
    assert said(waits) == (409, "too_many_kept", 2)
    assert act(owner, first, "cancel").status_code == 202
    assert owner.change("PATCH", f"queues/{queue.pk}/", weight, If_Match="*").json()["state"] == "waiting"
    assert said(owner.send("quota-changes/", body)) == (409, "too_many_kept", 2)
    assert drafted(world.client("admin"))["state"] == "draft"


def test_jobs_of_one_account_that_wait(world, settings):
    """Each draft asks what it would do: of 500 questions at a time the oldest are of no use to anybody."""
    settings.KEPT_WAITING_JOBS = 3
    owner, admin = world.users["owner"], world.users["admin"]
    made = [jobs.enqueue(kind="impact", owner=owner, actor="owner", params={}) for _ in range(5)]
    others = [jobs.enqueue(kind="impact", owner=admin, actor="admin", params={}) for _ in range(2)]
    jobs.sweep()
    ended = Job.objects.filter(state="cancelled").order_by("pk")
    assert [job.pk for job in ended] == [job.pk for job in made[:2]]
    assert "3 newer jobs of the same person wait" in ended[0].error
    assert Job.objects.filter(state="queued").count() == 3 + len(others)
    told = world.client("owner").read(f"jobs/{made[0].pk}/")
    assert (told["state"], "Given up" in told["error"]) == ("cancelled", True)


def test_earlier_revisions_of_one_change(world, settings):
    settings.KEPT_REVISIONS = 2
    owner, change = world.client("owner"), drafted(world.client("owner"))
    for cards in range(1, 6):
        edits = {"queue/acme-online": {"card_quota": {H200: cards}}}
        edited = owner.change("PATCH", f"quota-changes/{change['id']}/", {"edits": edits}, If_Match="*")
    assert edited.json()["revision"] == 6
    assert list(ChangeRevision.objects.values_list("number", flat=True)) == [4, 5]
    refused = world.client("admin").send(f"quota-changes/{change['id']}/reject/", {"reason": "x"}, If_Match='"1"')
    assert refused.status_code == 412


def test_invitations_that_wait(world, settings):
    settings.KEPT_INVITATIONS = 2
    owner = world.client("owner")
    made = [
        owner.send("users/", {"username": name, "memberships": [{"tenant": "acme"}]}) for name in ("mei", "li", "bo")
    ]
    assert [answer.status_code for answer in made] == [201, 201, 409]
    assert said(made[2]) == (409, "too_many_kept", 2)
    assert world.client("admin").send("users/", {"username": "bo"}).status_code == 201
    off = world.client("admin").send(f"users/{made[0].json()['id']}/deactivate/", {"reason": "not needed"})
    assert off.status_code == 200
    assert owner.send("users/", {"username": "wu", "memberships": [{"tenant": "acme"}]}).status_code == 201


def test_objects_that_admins_of_one_tenant_make(world, settings):
    settings.KEPT_OBJECTS_OF_TENANT = 3
    new = {"service_type": "training", "tenant": "acme", "business_line": "acme-research"}
    bodies = [{"cluster": "east", "edits": {f"queue/acme-{n}": new for n in range(count)}} for count in (1, 2)]
    owner, admin = world.client("owner"), world.client("admin")
    answers = [owner.send("quota-changes/?dry_run=true", body) for body in bodies]
    assert [answer.status_code for answer in answers] == [200, 403]
    assert "would have 4 of this kind" in answers[1].json()["detail"]
    assert answers[1].json()["errors"][0]["limit"] == 3
    assert admin.send("quota-changes/?dry_run=true", bodies[1]).status_code == 200
