"""Names that people decide by: no sign that is not seen."""

from __future__ import annotations

import pytest

from tests.api.page_forms import post_opened
from tests.api.test_quota_changes import act, drafted
from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.clusters.models import Cluster

# Right-to-left override, no width, bell, line separator, an isolate.
HIDDEN = ["\u202e", "\u200b", "\x07", "\u2028", "\u2066"]


@pytest.fixture
def place(world):
    return f"clusters/{world.clusters['east'].pk}/tree/"


def refusals(answer):
    body = answer.json()
    errors = body.get("plan", body).get("errors", [])
    return answer.status_code, [(error["code"], error["pointer"]) for error in errors]


@pytest.mark.parametrize("sign", HIDDEN)
def test_no_door_takes_a_name_with_a_sign_that_is_not_seen(world, place, sign):
    name, owner, admin = f"Chat{sign}one", world.client("owner"), world.client("admin")
    project, acme = Project.objects.get(slug="acme-chat"), world.tenants["acme"]
    doors = [
        admin.send("tenants/", {"slug": "new", "name": name}),
        owner.send("projects/", {"tenant": "acme", "slug": "new", "name": name}),
        owner.send("business-lines/", {"tenant": "acme", "slug": "new", "name": name}),
        owner.change("PATCH", f"tenants/{acme.pk}/", {"name": name}, If_Match="*"),
        owner.change("PATCH", f"projects/{project.pk}/", {"name": name}, If_Match="*"),
    ]
    for answer in doors:
        assert refusals(answer) == (400, [("misleading_name", "/name")]), answer.content
        assert f"there is U+{ord(sign):04X} at place 5" in answer.json()["detail"]
    edits = {"project/acme/new": {"name": name}, "tenant/acme": {"name": name}}
    tried = owner.send("quota-changes/?dry_run=true", {"cluster": "east", "edits": edits})
    assert refusals(tried) == (
        200,
        [("misleading_name", "/edits/project~1acme~1new/name"), ("misleading_name", "/edits/tenant~1acme/name")],
    )
    change = drafted(owner, edits)
    assert act(owner, change, "apply").json()["code"] == "misleading_name"
    tree = {"format": 1, "projects": {"acme/new": {"name": name}}}
    for dry, status in (("?dry_run=true", 200), ("", 400)):
        answer = owner.send(f"{place}{dry}", {"tree": tree, "keep": True, "reason": "x"}, If_Match="*")
        assert refusals(answer) == (status, [("misleading_name", "/tree/projects/acme~1new/name")]), answer.content
    page = post_opened(owner, f"/tenants/{acme.slug}/edit/", {"name": name, "description": ""})
    assert (page.status_code, "holds only signs that are seen" in page.content.decode()) == (400, True)
    assert not Project.objects.filter(slug="new").exists()


def test_a_name_that_was_given_before_stays_until_another_one_is_given(world):
    Tenant.objects.filter(slug="acme").update(name="Ac\u202eme")
    Tenant.objects.filter(slug="far").update(name="Rival")
    Tenant.objects.filter(slug="rival").update(name="Rival")
    admin = world.client("admin")
    for slug in ("acme", "rival"):
        change = drafted(admin, {f"tenant/{slug}": {"description": "as it was"}})
        assert act(admin, change, "apply").json()["state"] == "applied"
    assert Tenant.objects.get(slug="acme").name == "Ac\u202eme"


def test_an_approver_sees_the_short_name_that_stays_beside_the_name(world):
    Tenant.objects.filter(slug="acme").update(name="Rivalry Inc")
    Cluster.objects.update(approval_required=True)
    owner, admin = world.client("owner"), world.client("admin")
    change = drafted(owner, {"queue/acme-online": {"cpu_milli": 1000}})
    act(owner, change, "apply")
    page = admin.get(f"/clusters/east/changes/{change['id']}/").content.decode()
    assert 'Rivalry Inc <span class="key">acme</span>' in page
    assert 'Rivalry Inc <span class="key">acme</span>' in admin.get("/waiting/").content.decode()


def test_a_request_for_more_quota_names_the_tenant_by_both_names(world):
    Tenant.objects.filter(slug="acme").update(name="Rivalry Inc")
    owner, admin = world.client("owner"), world.client("admin")
    change = drafted(owner, {"tenant/acme": {"quota": {"inference": {"card_quota": {"NVIDIA-H200": 9}}}}})
    act(owner, change, "apply")
    for path in ("/waiting/", f"/clusters/east/changes/{change['id']}/"):
        assert "Rivalry Inc (acme)" in admin.get(path).content.decode()
