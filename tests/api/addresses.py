"""The addresses of the API in the world of `cast`: those of the objects of tenant acme and of cluster east."""

import datetime as dt
from unittest.mock import patch

from django.utils import timezone

from tests.matrix.expectations import EXPECTED
from tests.quota_writes import write_tide_plan
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit import segment_services
from tidesched_web.changes import services as changes
from tidesched_web.clusters.models import Cluster
from tidesched_web.jobs.services import enqueue
from tidesched_web.quota.models import Drift
from tidesched_web.scheduling.models import Alert

NIGHT = {
    "days": ["mon"], "start": "22:00", "end": "07:00", "quota": {"acme-online": {"NVIDIA-H200": {"add": -1}}},
}  # fmt: skip
LOWER = {"queue/acme-online": {"card_quota": {"NVIDIA-H200": 5}}}
POLICY = {"text": 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n', "reason": "drill"}

# (name, method) of each operation.
OPERATIONS = sorted((name.removeprefix("api:"), method) for name, method in EXPECTED if name.startswith("api:"))


def drift(world):
    """The weight of acme's queue was set in the cluster by hand."""
    live = {"kind": "Queue", "metadata": {"name": "acme-online"}, "spec": {"weight": 7}}
    field = {
        "field": "spec.weight",
        "intent": "1",
        "pushed": "1",
        "live": "7",
        "changed_by": "kubectl",
        "changed_at": "",
    }
    now, queue = timezone.now(), world.queues["acme-online"]
    return Drift.objects.get_or_create(
        cluster=world.clusters["east"], kind="Queue", name="acme-online",
        defaults={
            "queue": queue, "what": "changed", "fields": [field], "live": live, "found_at": now, "changed_at": now,
        },
    )[0]  # fmt: skip


def address(world, name):
    """The address of the object of acme (or of cluster east) that the matrix is about."""
    acme, east, web = world.tenants["acme"], world.clusters["east"], world.gangs["web"]
    pk = {
        "clusters": east.pk,
        "tenants": acme.pk,
        "projects": acme.projects.get().pk,
        "business-lines": acme.business_lines.get().pk,
        "queues": world.queues["acme-online"].pk,
        "card-types": east.card_types.first().pk,
        "priority-classes": east.priority_classes.first().pk,
        "gangs": web.pk,
        "reclaims": world.reclaim.pk,
        "sessions": world.session.pk,
        "nodes": east.nodes.first().pk,
        "members": acme.memberships.first().pk,
        "grants": world.grant.pk,
        "users": world.users["owner"].pk,
    }
    if name == "index":
        return "/api/v1/"
    if name == "clusters-policy-release":
        return f"/api/v1/clusters/{east.pk}/policy/release/"
    if name.startswith("clusters-connection-"):
        return f"/api/v1/clusters/{east.pk}/connection/{name.rpartition('-')[2]}/"
    if name == "usage":
        return f"/api/v1/usage/?queue={world.queues['acme-online'].pk}"
    if name == "tenants-card-hours":
        return f"/api/v1/tenants/{acme.pk}/card-hours/"
    if name.startswith("schema"):
        return "/api/v1/schema/" + ("docs/" if name == "schema-docs" else "")
    resource, _, act = name.partition("-") if name.startswith("alerts-") else name.rpartition("-")
    if act == "list":
        return f"/api/v1/{resource}/"
    if name == "audit-segment-file":
        with patch.object(segment_services, "YOUNGEST", dt.timedelta(0)):
            made = segment_services.seal(before=timezone.now(), actor="tests")
        return f"/api/v1/audit/segments/{made[0].pk}/file/"
    if resource == "audit" and act in ("bundle", "chains", "heads", "segments"):
        return f"/api/v1/audit/{act}/"
    if resource == "audit":
        found = world.client("admin").read("audit/", object_type="project", action="project.create")["results"]
        return next(row["url"] for row in found if row["object_label"] == "acme/acme-chat")
    if resource == "quota-changes":
        admin = access_of(world.users["admin"])
        if act == "approve":  # a draft that needs none is not approved
            Cluster.objects.filter(pk=east.pk).update(approval_required=True)
            east.refresh_from_db()
        change = changes.draft(cluster=east, edits=LOWER, access=admin, reason="drill", source="api")
        return f"/api/v1/quota-changes/{change.pk}/" + ("" if act == "detail" else f"{act}/")
    if resource == "tide-plans":
        plan = write_tide_plan(cluster=east, name="nights", document={"layers": [NIGHT]}, actor="tests")
        return f"/api/v1/tide-plans/{plan.pk}/"
    if resource == "jobs":
        job = enqueue(kind="impact", owner=world.users["owner"], actor="owner", params={}, cluster=east)
        return f"/api/v1/jobs/{job.pk}/" + ("" if act == "detail" else f"{act}/")
    if resource == "drift":
        return f"/api/v1/drift/{drift(world).pk}/" + ("" if act == "detail" else f"{act}/")
    if resource == "alerts":
        said = {"severity": "warning", "code": "node_lost", "message": "drill", "raised_at": timezone.now()}
        given = {"acknowledged_at": timezone.now(), "acknowledged_by": "drill"} if act == "hand-back" else {}
        key = "drill-of-one" if given else "drill"
        alert = Alert.objects.get_or_create(cluster=east, key=key, defaults=said | given)[0]
        return f"/api/v1/alerts/{alert.pk}/" + ("" if act == "detail" else f"{act}/")
    if resource == "tokens":
        world.token("owner", "quota:read")
        return world.client("admin").read("tokens/", user="owner")["results"][0]["url"]
    return f"/api/v1/{resource}/{pk[resource]}/" + ("" if act == "detail" else f"{act}/")
