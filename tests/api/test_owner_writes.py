"""POST, PATCH and DELETE of tenants, projects, business lines and members."""

from tests.api.cast import ApiClient
from tidesched_web.accounts.models import Membership, Project, Tenant
from tidesched_web.audit.models import AuditEntry


def test_a_tenant_is_made_changed_and_deleted(world):
    admin = world.client("admin")
    made = admin.send("tenants/", {"slug": "nova", "name": "Nova", "reason": "a new customer"})
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    document = made.json()
    assert made.headers["Location"] == document["url"]
    assert admin.get(document["url"]).json() == document
    changed = admin.change("PATCH", document["url"], {"name": "Nova Labs"}, If_Match=made.headers["ETag"])
    assert (changed.status_code, changed.json()["name"], changed.headers["ETag"]) == (200, "Nova Labs", '"2"')
    stale = admin.change("PATCH", document["url"], {"name": "Other"}, If_Match=made.headers["ETag"])
    assert (stale.status_code, stale.json()["code"], stale.json()["etag"]) == (412, "stale", '"2"')
    assert stale.headers["Content-Type"] == "application/problem+json"
    assert admin.change("DELETE", document["url"]).status_code == 204
    assert admin.get(document["url"]).status_code == 404
    entries = AuditEntry.objects.order_by("-id").values_list("action", "reason")[:3]
    assert list(entries) == [("tenant.delete", ""), ("tenant.update", ""), ("tenant.create", "a new customer")]


def test_a_slug_that_is_taken_and_a_member_that_nobody_knows_are_named(world):
    admin = world.client("admin")
    taken = admin.send("tenants/", {"slug": "acme"})
    assert (taken.status_code, taken.json()["errors"][0]["pointer"]) == (409, "/slug")
    unknown = admin.send("tenants/", {"slug": "new", "color": "blue"})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (400, "/color")
    stays = admin.change("PATCH", f"tenants/{world.tenants['acme'].pk}/", {"slug": "other"})
    assert "/slug" in stays.json()["errors"][0]["pointer"]


def test_a_dry_run_answers_the_same_and_does_nothing(world):
    admin, before = world.client("admin"), AuditEntry.objects.count()
    tried = admin.send("tenants/?dry_run=true", {"slug": "nova"}, Idempotency_Key="k-1")
    assert (tried.status_code, tried.json()["dry_run"], tried.json()["slug"]) == (200, True, "nova")
    assert "Location" not in tried.headers
    assert not Tenant.objects.filter(slug="nova").exists()
    assert AuditEntry.objects.count() == before
    assert admin.send("tenants/", {"slug": "nova"}, Idempotency_Key="k-1").status_code == 201, "the key is unused"
    assert admin.send("tenants/?dry_run=maybe", {"slug": "nova"}).status_code == 400
    project = Project.objects.get(slug="far-chat")
    world.queues["far-online"].delete()
    tried = admin.change("DELETE", f"projects/{project.pk}/?dry_run=1")
    assert (tried.status_code, tried.json()) == (200, {"dry_run": True})
    assert Project.objects.filter(pk=project.pk).exists()


def test_the_same_key_makes_one_project(world):
    owner, body = world.client("owner"), {"tenant": "acme", "slug": "twin"}
    first = owner.send("projects/", body, Idempotency_Key="k-1")
    again = owner.send("projects/", body, Idempotency_Key="k-1")
    assert first.json() == again.json()
    assert Project.objects.filter(slug="twin").count() == 1
    assert owner.send("projects/", body).status_code == 409


def test_what_depends_on_a_tenant_is_listed(world):
    refused = world.client("admin").change("DELETE", f"tenants/{world.tenants['acme'].pk}/")
    assert refused.status_code == 409
    kinds = {group["kind"]: (group["count"], group["blocks"]) for group in refused.json()["dependents"]}
    assert kinds["queue"] == (2, True)
    assert kinds["member"] == (2, False)


def test_the_admin_of_a_tenant_keeps_its_members(world):
    owner = world.client("owner")
    made = owner.send("members/", {"tenant": "acme", "user": "rival", "reason": "joins"})
    assert made.status_code == 201
    assert made.json()["role"] == "member"
    url = made.json()["url"]
    assert owner.change("PATCH", url, {"role": "admin"}).json()["role"] == "admin"
    assert owner.change("DELETE", url, {"reason": "leaves"}).status_code == 204
    assert not Membership.objects.filter(user=world.users["rival"], tenant=world.tenants["acme"]).exists()
    assert owner.send("members/", {"tenant": "acme", "user": "nobody"}).json()["code"] == "unknown_user"
    assert owner.send("members/", {"tenant": "acme", "user": "teammate"}).json()["code"] == "already_exists"
    assert world.client("teammate").send("members/", {"tenant": "acme", "user": "rival"}).status_code == 403
    entry = AuditEntry.objects.filter(action="membership.remove").get()
    assert (entry.reason, entry.before) == ("leaves", {"role": "admin"})


def test_quota_write_does_not_give_anybody_rights(world):
    client = ApiClient(token=world.token("owner", "quota:write"))
    assert client.send("projects/", {"tenant": "acme", "slug": "by-token"}).status_code == 201
    assert client.send("members/", {"tenant": "acme", "user": "rival"}).json()["code"] == "missing_scope"
