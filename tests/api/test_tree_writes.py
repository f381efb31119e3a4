"""POST, PATCH and DELETE of queues, priority classes, card types and grants; the policy and its release."""

from tests.api.addresses import POLICY
from tests.api.cast import A100, H200
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import CardType, PolicyRevision
from tidesched_web.quota.models import NamespaceGrant, PriorityClass, Queue
from tidesched_web.workloads.models import Gang

TRAIN = {
    "cluster": "east",
    "name": "acme-new",
    "service_type": "training",
    "business_line": "acme-research",
    "card_quota": {A100: 2},
    "reason": "more research",
}


def test_a_queue_takes_the_defaults_of_the_tide(world):
    owner = world.client("owner")
    made = owner.send("queues/", TRAIN)
    assert made.status_code == 201, made.content
    document = made.json()
    assert made.headers["Location"] == document["url"]
    assert (document["priority"], document["reclaimable"], document["weight"]) == (20000, True, 1)
    assert (document["tenant"]["slug"], document["card_quota"]) == ("acme", {A100: 2})
    entry = AuditEntry.objects.filter(object_type="queue", object_label="acme-new").get()
    assert (entry.actor, entry.reason) == ("owner", "more research")
    assert owner.send("queues/", TRAIN).status_code == 409


def test_names_of_queues_are_as_a_cluster_allows_them_and_a_refusal_says_the_rule(world):
    owner = world.client("owner")
    for name in ("team.a", 64 * "a"):
        assert owner.send("queues/", TRAIN | {"name": name, "card_quota": {}}).status_code == 201
    change = {"cluster": "east", "edits": {"queue/team.a": {"weight": 2}}, "reason": "x"}
    assert world.client("admin").send("quota-changes/?dry_run=true", change).json()["plan"]["errors"] == []
    for name in ("Team", "a..b", "root", "default"):
        refused = owner.send("queues/", TRAIN | {"name": name}).json()
        rule = "lower-case letters, digits, '-' and '.', at most 253, a letter or digit at each end and beside each '.'"
        assert refused["errors"][0]["pointer"] == "/name"
        assert f"{rule}; root and default are Volcano's own." in refused["errors"][0]["detail"]
        edits = {f"queue/{name}": {key: TRAIN[key] for key in ("service_type", "business_line")}}
        body = {"cluster": "east", "edits": edits, "reason": "x"}
        assert rule in str(world.client("admin").send("quota-changes/?dry_run=true", body).json())


def test_one_card_is_changed_and_the_others_stay(world):
    queue, owner = world.queues["acme-online"], world.client("owner")
    url = f"queues/{queue.pk}/"
    etag = owner.get(f"/api/v1/{url}").headers["ETag"]
    patch = {"card_quota": {A100: None}, "reason": "not needed"}
    assert owner.change("PATCH", url, patch).json()["code"] == "precondition_required"
    tried = owner.change("PATCH", f"{url}?dry_run=true", {"card_quota": {H200: 40}, "reason": "x"})
    assert tried.status_code == 200
    assert tried.json()["plan"]["errors"][0]["pointer"] == f"/card_quota/{H200}"
    changed = owner.change("PATCH", url, patch, If_Match=etag)
    assert (changed.status_code, changed.json()["card_quota"]) == (200, {H200: 6}), changed.content
    stale = owner.change("PATCH", url, patch, If_Match=etag)
    assert (stale.status_code, stale.headers["Content-Type"]) == (412, "application/problem+json")
    now = changed.headers["ETag"]
    beyond = owner.change("PATCH", url, {"card_quota": {H200: 40}, "reason": "x"}, If_Match=now)
    assert (beyond.status_code, beyond.json()["errors"][0]["pointer"]) == (422, f"/card_quota/{H200}")
    silent = owner.change("PATCH", url, {"card_quota": {H200: 5}}, If_Match=now)
    assert (silent.status_code, silent.json()["code"]) == (400, "reason_required")
    ranked = owner.change("PATCH", url, {"priority": 90000, "reason": "me first"}, If_Match=now)
    assert ranked.status_code == 403


def test_a_queue_closes_drains_and_goes(world):
    queue, admin = world.queues["acme-train"], world.client("admin")
    url = f"queues/{queue.pk}/"
    refused = admin.change("DELETE", url, {"reason": "x"}, If_Match="*")
    assert refused.status_code == 409
    closed = admin.change("PATCH", url, {"state": "Closed", "reason": "moved"}, If_Match="*")
    assert closed.status_code == 200, closed.content
    assert admin.change("DELETE", f"{url}?reason=over", If_Match="*").status_code == 409, "a gang waits in it"
    Gang.objects.filter(queue=queue).delete()
    Queue.objects.filter(pk=queue.pk).update(live_state="Closed")
    gone = admin.change("DELETE", f"{url}?reason=over", If_Match="*")
    assert gone.status_code == 204, gone.content
    assert not Queue.objects.filter(pk=queue.pk).exists()


def test_replacing_a_live_value_is_an_explicit_act(world):
    admin = world.client("admin")
    made = admin.send("priority-classes/", {"cluster": "east", "name": "pc-night", "value": 10, "reason": "night"})
    assert made.status_code == 201, made.content
    url = made.json()["url"]
    etag = made.headers["ETag"]
    refused = admin.change("PATCH", url, {"value": 11, "reason": "x"}, If_Match=etag)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["code"] == "replace_needed"
    replaced = admin.change("PATCH", url, {"value": 11, "replace": True, "reason": "x"}, If_Match=etag)
    assert replaced.json()["value"] == 11
    assert admin.change("DELETE", url, {"reason": "over"}, If_Match="*").status_code == 204
    assert not PriorityClass.objects.filter(name="pc-night").exists()


def test_a_card_type_is_declared_ahead_and_taken_back(world):
    admin = world.client("admin")
    body = {"cluster": "east", "name": "NVIDIA-H200/mig-1g.18gb-mixed", "kind": "mig", "parent": H200, "reason": "soon"}
    made = admin.send("card-types/", body)
    assert (made.status_code, made.json()["discovered"]) == (201, False), made.content
    assert made.json()["parent"] == H200
    changed = admin.change("PATCH", made.json()["url"], {"resource": "nvidia.com/mig-1g.18gb", "reason": "fix"})
    assert changed.json()["resource"] == "nvidia.com/mig-1g.18gb"
    assert admin.change("DELETE", made.json()["url"], {"reason": "never came"}).status_code == 204
    assert CardType.objects.filter(cluster__slug="east").count() == 2


def test_a_card_type_goes_by_other_names(world):
    admin = world.client("admin")
    card = CardType.objects.get(cluster__slug="east", name=H200)
    url = f"/api/v1/card-types/{card.pk}/"
    named = admin.change("PATCH", url, {"aliases": ["H200"], "reason": "everybody says so"})
    assert (named.status_code, named.json()["aliases"]) == (200, ["H200"]), named.content
    assert admin.change("PATCH", url, {"resource": "x", "reason": "x"}).status_code == 409, "what nodes say of it"
    queue = Queue.objects.get(name="acme-train")
    patch = {"card_quota": {"H200": 5}, "reason": "by its short name"}
    changed = world.client("owner").change("PATCH", f"/api/v1/queues/{queue.pk}/", patch, If_Match="*")
    assert (changed.status_code, changed.json()["card_quota"][H200]) == (200, 5), changed.content
    assert world.client("owner").change("PATCH", url, {"aliases": [], "reason": "x"}).status_code == 403
    for _again in range(2):
        gone = admin.change("PATCH", url, {"aliases": [], "reason": "no longer"})
        assert (gone.status_code, gone.json()["aliases"], gone.json()["discovered"]) == (200, [], False)


def test_a_grant_is_given_and_taken_back(world):
    owner = world.client("owner")
    body = {"cluster": "east", "namespace": "acme-dev", "queue": "acme-train", "reason": "dev"}
    made = owner.send("grants/", body)
    assert (made.status_code, made.json()["queue"]) == (201, "acme-train"), made.content
    assert owner.send("grants/", body | {"queue": "rival-train"}).status_code == 400
    assert owner.change("DELETE", made.json()["url"], {"reason": "over"}).status_code == 204
    assert not NamespaceGrant.objects.filter(namespace="acme-dev").exists()


def test_a_policy_is_tried_stored_and_released(world):
    admin, url = world.client("admin"), f"clusters/{world.clusters['east'].pk}/policy/"
    etag = admin.get(f"/api/v1/{url}").headers["ETag"]
    tried = admin.change("PUT", f"{url}?dry_run=true", POLICY)
    assert tried.status_code == 200, tried.content
    assert tried.json()["valid"]
    assert "+  - name: gang" in tried.json()["difference"]
    assert PolicyRevision.objects.filter(cluster__slug="east").count() == 1
    broken = admin.change("PUT", url, POLICY | {"text": "actions: allocat\n"}, If_Match=etag)
    assert (broken.status_code, broken.json()["errors"][0]["pointer"]) == (400, "/text")
    assert admin.get(f"/api/v1/{url}").json()["number"] == 1, "the last good one goes on ruling"
    stored = admin.change("PUT", url, POLICY, If_Match=etag)
    assert (stored.json()["number"], stored.json()["released_at"], stored.headers["ETag"]) == (2, None, '"2"')
    assert admin.change("PATCH", url, POLICY | {"text": "x"}, If_Match=etag).status_code == 412
    released = admin.send(f"{url}release/", {"reason": "looked at it"})
    assert released.json()["released_at"]
    actions = AuditEntry.objects.order_by("-id").values_list("action", "reason")[:2]
    assert list(actions) == [("policy.release", "looked at it"), ("policy.set", "drill")]


def test_all_wrong_members_are_listed_at_once_with_their_values(world):
    queue = world.client("admin").read("queues/?name=acme-online")["results"][0]
    wanted = {"weight": "heavy", "state": "Shut", "colour": "red", "priority": -1, "reason": "x"}
    answer = world.client("admin").change("PATCH", f"queues/{queue['id']}/", wanted, If_Match="*")
    assert answer.status_code == 400
    said = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert said.keys() == {"/weight", "/state", "/colour", "/priority"}
    assert said["/weight"] == "'heavy': a whole number is meant."
    assert "Shut" in said["/state"]
    assert "Known: reason, weight" in said["/colour"]
