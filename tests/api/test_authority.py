"""The authority matrix: every route of the API × everybody of the cast. A route that is not listed here fails."""

import datetime as dt
from unittest.mock import patch

import orjson
import pytest
from django.db import transaction
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver
from django.utils import timezone

from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit import segment_services
from tidesched_web.changes import services as changes
from tidesched_web.clusters.models import Cluster
from tidesched_web.jobs.services import enqueue
from tidesched_web.quota.models import Drift
from tidesched_web.quota.services.tide_plans import write_tide_plan
from tidesched_web.scheduling.models import Alert

NIGHT = {
    "days": ["mon"], "start": "22:00", "end": "07:00", "quota": {"acme-online": {"NVIDIA-H200": {"add": -1}}},
}  # fmt: skip

CAST = ("anonymous", "owner", "teammate", "stranger", "rival", "auditor", "admin")
TOKENS = (
    "token:cluster:read", "token:quota:read", "token:reclaim:read", "token:audit:read", "token:metrics:read",
    "token:quota:write", "token:admin",
)  # fmt: skip

PUBLIC = dict.fromkeys(CAST, 200)
# A list is open to everybody who is signed in and shows each what is theirs; a detail out of sight is a 404.
LIST = {name: 401 if name == "anonymous" else 200 for name in CAST}
OF_ACME = LIST | {"stranger": 404, "rival": 404}
OF_EAST = LIST | {"stranger": 404}
TOKEN_LIST = LIST
OF_OWNER = LIST | {"teammate": 404, "stranger": 404, "rival": 404, "auditor": 404}
OF_ITS_ADMINS = LIST | {"teammate": 404, "stranger": 404, "rival": 404}
ACT = OF_EAST | {"owner": 403, "teammate": 403, "rival": 403, "auditor": 403}
# Writes: what is out of sight is a 404 (400 where a body names it), what is in sight but not one's own to change a 403.
BY_ADMINS = LIST | {"owner": 403, "teammate": 403, "stranger": 403, "rival": 403, "auditor": 403, "admin": 201}
IN_ACME = OF_ACME | {"teammate": 403, "auditor": 403}
MADE_IN_ACME = BY_ADMINS | {"owner": 201, "stranger": 400, "rival": 400}
WRITE = ("quota:write",)
OF_ADMINS = LIST | {"owner": 404, "teammate": 404, "stranger": 404, "rival": 404}
CHANGES = ("quota:read", "quota:write")
ACTS_IN_ACME = OF_ACME | {"owner": 202, "teammate": 403, "auditor": 403, "admin": 202}

DECIDED = OF_ACME | {"owner": 403, "teammate": 403, "auditor": 403, "admin": 202}
FOR_AUDITORS = LIST | dict.fromkeys(("owner", "teammate", "stranger", "rival"), 403)

# (route, method) → (who may, scopes of which one lets a token of the owner do what the owner may)
MATRIX = {
    ("index", "get"): (PUBLIC, None),
    ("schema", "get"): (PUBLIC, None),
    ("schema-docs", "get"): (PUBLIC, None),
    ("clusters-list", "get"): (LIST, ("cluster:read", "quota:read")),
    ("clusters-detail", "get"): (OF_EAST, ("cluster:read", "quota:read")),
    ("clusters-policy", "get"): (OF_EAST, ("cluster:read", "quota:read")),
    ("clusters-pause", "post"): (ACT, ("cluster:read", "quota:read")),
    ("clusters-list", "post"): (BY_ADMINS | {"admin": 400}, ("cluster:read", "quota:read")),
    ("clusters-detail", "delete"): (ACT | {"admin": 409}, ("cluster:read", "quota:read")),
    ("clusters-detail", "patch"): (ACT, ("cluster:read", "quota:read")),
    ("clusters-connection", "get"): (ACT | {"auditor": 200}, ("cluster:read", "quota:read")),
    ("clusters-connection", "put"): (ACT | {"admin": 400}, ("cluster:read", "quota:read")),
    ("clusters-connection", "delete"): (ACT, ("cluster:read", "quota:read")),
    ("clusters-connection-test", "post"): (ACT | {"admin": 202}, ("cluster:read", "quota:read")),
    ("clusters-connection-tests", "get"): (ACT | {"auditor": 200}, ("cluster:read", "quota:read")),
    ("clusters-resume", "post"): (ACT | {"admin": 409}, ("cluster:read", "quota:read")),
    ("tenants-list", "get"): (LIST, ("quota:read",)),
    ("tenants-detail", "get"): (OF_ACME, ("quota:read",)),
    ("projects-list", "get"): (LIST, ("quota:read",)),
    ("projects-detail", "get"): (OF_ACME, ("quota:read",)),
    ("queues-list", "get"): (LIST, ("quota:read",)),
    ("queues-detail", "get"): (OF_ACME, ("quota:read",)),
    ("card-types-list", "get"): (LIST, ("cluster:read", "quota:read")),
    ("card-types-detail", "get"): (OF_EAST, ("cluster:read", "quota:read")),
    ("priority-classes-list", "get"): (LIST, ("quota:read",)),
    ("priority-classes-detail", "get"): (OF_EAST, ("quota:read",)),
    ("gangs-list", "get"): (LIST, ("cluster:read", "quota:read")),
    ("gangs-detail", "get"): (OF_ACME, ("cluster:read", "quota:read")),
    ("gangs-pods", "get"): (OF_ACME, ("cluster:read", "quota:read")),
    ("gangs-timeline", "get"): (OF_ACME, ("cluster:read", "quota:read")),
    ("reclaims-list", "get"): (LIST, ("reclaim:read",)),
    ("reclaims-detail", "get"): (OF_EAST, ("reclaim:read",)),
    ("sessions-list", "get"): (LIST, ("cluster:read", "reclaim:read")),
    ("sessions-detail", "get"): (OF_EAST, ("cluster:read", "reclaim:read")),
    ("sessions-decisions", "get"): (OF_EAST, ("cluster:read", "reclaim:read")),
    ("nodes-list", "get"): (LIST, ("cluster:read",)),
    ("nodes-detail", "get"): (OF_EAST, ("cluster:read",)),
    ("usage", "get"): (OF_ACME, ("metrics:read", "quota:read")),
    ("audit-list", "get"): (LIST, ("audit:read",)),
    ("audit-detail", "get"): (OF_ACME, ("audit:read",)),
    ("audit-bundle", "get"): (FOR_AUDITORS, ("audit:read",)),
    ("audit-chains", "get"): (FOR_AUDITORS, ("audit:read",)),
    ("audit-heads", "get"): (FOR_AUDITORS, ("audit:read",)),
    ("audit-segments", "get"): (FOR_AUDITORS, ("audit:read",)),
    ("audit-segment-file", "get"): (FOR_AUDITORS, ("audit:read",)),
    ("tide-plans-list", "get"): (LIST, ("quota:read",)),
    ("tide-plans-detail", "get"): (OF_ACME, ("quota:read",)),
    ("tide-plans-list", "post"): (BY_ADMINS, WRITE),
    ("tide-plans-detail", "patch"): (OF_ACME | dict.fromkeys(("owner", "teammate", "auditor"), 403), WRITE),
    ("tide-plans-detail", "delete"): (
        OF_ACME | dict.fromkeys(("owner", "teammate", "auditor"), 403) | {"admin": 204},
        WRITE,
    ),
    ("tenants-list", "post"): (BY_ADMINS, WRITE),
    ("tenants-detail", "patch"): (IN_ACME, WRITE),
    ("tenants-detail", "delete"): (OF_ACME | {"owner": 403, "teammate": 403, "auditor": 403, "admin": 409}, WRITE),
    ("projects-list", "post"): (MADE_IN_ACME, WRITE),
    ("projects-detail", "patch"): (IN_ACME, WRITE),
    ("projects-detail", "delete"): (IN_ACME | {"owner": 409, "admin": 409}, WRITE),
    ("business-lines-list", "get"): (LIST, ("quota:read",)),
    ("business-lines-detail", "get"): (OF_ACME, ("quota:read",)),
    ("business-lines-list", "post"): (MADE_IN_ACME, WRITE),
    ("business-lines-detail", "patch"): (IN_ACME, WRITE),
    ("business-lines-detail", "delete"): (IN_ACME | {"owner": 409, "admin": 409}, WRITE),
    ("queues-list", "post"): (MADE_IN_ACME, WRITE),
    ("queues-detail", "patch"): (IN_ACME, WRITE),
    ("queues-detail", "delete"): (IN_ACME | {"owner": 409, "admin": 409}, WRITE),
    ("priority-classes-list", "post"): (BY_ADMINS, WRITE),
    ("priority-classes-detail", "patch"): (ACT, WRITE),
    ("priority-classes-detail", "delete"): (ACT | {"admin": 204}, WRITE),
    ("card-types-list", "post"): (BY_ADMINS, WRITE),
    ("card-types-detail", "patch"): (ACT, WRITE),
    ("card-types-detail", "delete"): (ACT | {"admin": 409}, WRITE),
    ("grants-list", "get"): (LIST, ("quota:read",)),
    ("grants-detail", "get"): (OF_ACME, ("quota:read",)),
    ("grants-list", "post"): (MADE_IN_ACME, WRITE),
    ("grants-detail", "delete"): (IN_ACME | {"owner": 204, "admin": 204}, WRITE),
    ("clusters-policy", "put"): (ACT, ("cluster:read", "quota:read")),
    ("clusters-policy", "patch"): (ACT, ("cluster:read", "quota:read")),
    ("clusters-policy-release", "post"): (ACT, ("cluster:read", "quota:read")),
    ("members-list", "post"): (MADE_IN_ACME, ("admin",)),
    ("members-detail", "patch"): (IN_ACME, ("admin",)),
    ("members-detail", "delete"): (IN_ACME | {"owner": 204, "admin": 204}, ("admin",)),
    ("quota-changes-list", "get"): (LIST, CHANGES),
    ("quota-changes-detail", "get"): (OF_ACME, CHANGES),
    ("quota-changes-plan", "get"): (OF_ACME, CHANGES),
    ("quota-changes-forecast", "get"): (OF_ACME, CHANGES),
    ("quota-changes-list", "post"): (
        LIST | {"owner": 201, "teammate": 403, "stranger": 400, "rival": 403, "auditor": 403, "admin": 201},
        WRITE,
    ),
    # A platform admin's draft about a queue of acme's: acme's admin may decide on it, its author may not approve it.
    ("quota-changes-detail", "patch"): (ACTS_IN_ACME | {"owner": 403, "admin": 200}, WRITE),
    ("quota-changes-approve", "post"): (ACTS_IN_ACME | {"admin": 403}, WRITE),
    ("quota-changes-reject", "post"): (ACTS_IN_ACME, WRITE),
    ("quota-changes-cancel", "post"): (ACTS_IN_ACME | {"owner": 403}, WRITE),
    ("quota-changes-apply", "post"): (ACTS_IN_ACME, WRITE),
    ("quota-changes-retry", "post"): (ACTS_IN_ACME | {"owner": 409, "admin": 409}, WRITE),
    ("quota-changes-rollback", "post"): (ACTS_IN_ACME | {"owner": 409, "admin": 409}, WRITE),
    ("jobs-list", "get"): (LIST, ("quota:read", "quota:write")),
    ("jobs-detail", "get"): (OF_OWNER, ("quota:read", "quota:write")),
    ("jobs-cancel", "post"): (OF_OWNER, ("quota:write",)),
    ("drift-list", "get"): (LIST, CHANGES),
    ("drift-detail", "get"): (OF_ACME, CHANGES),
    ("drift-list", "post"): (BY_ADMINS | {"admin": 202}, CHANGES),
    ("drift-repush", "post"): (DECIDED | {"admin": 409}, CHANGES),  # the cluster is only observed
    ("drift-adopt", "post"): (DECIDED, CHANGES),
    ("drift-ignore", "post"): (DECIDED, CHANGES),
    ("alerts-list", "get"): (LIST, ("cluster:read", "reclaim:read")),
    ("alerts-detail", "get"): (OF_EAST, ("cluster:read", "reclaim:read")),
    ("alerts-acknowledge", "post"): (ACT, ("cluster:read", "reclaim:read")),
    ("alerts-resolve", "post"): (ACT, ("cluster:read", "reclaim:read")),
    ("members-list", "get"): (LIST, ("quota:read",)),
    ("members-detail", "get"): (OF_ACME, ("quota:read",)),
    ("tokens-list", "get"): (TOKEN_LIST, ()),
    ("tokens-list", "post"): ({name: 401 if name == "anonymous" else 201 for name in CAST}, ()),
    ("tokens-detail", "get"): (OF_OWNER, ()),
    ("tokens-detail", "delete"): (OF_OWNER | {"owner": 204, "admin": 204}, ()),
    ("users-list", "get"): (LIST, ("audit:read",)),
    ("users-detail", "get"): (OF_ITS_ADMINS, ("audit:read",)),
    # An admin of a tenant invites into it and repeats that invitation; the accounts themselves are the platform's.
    ("users-list", "post"): (MADE_IN_ACME | {"teammate": 403}, ()),
    ("users-detail", "patch"): (OF_ITS_ADMINS | {"owner": 403, "auditor": 403}, ()),
    ("users-link", "post"): (OF_ITS_ADMINS | {"owner": 409, "auditor": 403, "admin": 201}, ()),
    ("users-deactivate", "post"): (OF_ITS_ADMINS | {"owner": 403, "auditor": 403}, ()),
    ("users-activate", "post"): (OF_ITS_ADMINS | {"owner": 403, "auditor": 403}, ()),
}


LOWER = {"queue/acme-online": {"card_quota": {"NVIDIA-H200": 5}}}

NOWHERE = {"api_url": "https://169.254.169.254", "token": "x", "reason": "drill"}
POLICY = {"text": 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n', "reason": "drill"}

# (route, method) → the body of the request, from the world; the others send a reason.
BODIES = {
    ("tenants-list", "post"): lambda world: {"slug": "new-tenant"},
    ("tide-plans-list", "post"): lambda world: {
        "cluster": "east",
        "name": "days",
        "layers": [NIGHT],
        "reason": "drill",
    },
    ("tide-plans-detail", "patch"): lambda world: {"position": 4, "reason": "drill"},
    ("tenants-detail", "patch"): lambda world: {"name": "Acme & Sons"},
    ("projects-list", "post"): lambda world: {"tenant": world.tenants["acme"].pk, "slug": "new-project"},
    ("projects-detail", "patch"): lambda world: {"name": "Chat"},
    ("business-lines-list", "post"): lambda world: {"tenant": "acme", "slug": "new-line"},
    ("business-lines-detail", "patch"): lambda world: {"name": "Research"},
    ("queues-list", "post"): lambda world: {
        "cluster": "east",
        "name": "new",
        "service_type": "inference",
        "project": "acme-chat",
        "reason": "drill",
        "tenant": "acme",
    },
    ("queues-detail", "patch"): lambda world: {"card_quota": {"NVIDIA-H200": 5}, "reason": "drill"},
    ("priority-classes-list", "post"): lambda world: {
        "cluster": "east",
        "name": "pc-new",
        "value": 5,
        "reason": "drill",
    },
    ("priority-classes-detail", "patch"): lambda world: {"description": "new", "reason": "drill"},
    ("card-types-list", "post"): lambda world: {"cluster": "east", "name": "NVIDIA-B200", "reason": "drill"},
    ("grants-list", "post"): lambda world: {
        "cluster": "east",
        "namespace": "more",
        "queue": "acme-online",
        "reason": "drill",
    },
    ("drift-list", "post"): lambda world: {"ids": [drift(world).pk], "act": "ignore", "reason": "drill"},
    # An address that no cluster has: nothing is asked, and nobody waits for a worker.
    ("clusters-list", "post"): lambda world: {"name": "Hall 9", **NOWHERE},
    ("clusters-connection", "put"): lambda world: NOWHERE,
    ("clusters-connection-test", "post"): lambda world: {},
    ("clusters-detail", "delete"): lambda world: {"name": "east", "reason": "drill"},
    ("clusters-detail", "patch"): lambda world: {"name": "East hall", "reason": "drill"},
    ("clusters-policy", "put"): lambda world: POLICY,
    ("clusters-policy", "patch"): lambda world: POLICY,
    ("members-list", "post"): lambda world: {"tenant": "acme", "user": "rival"},
    ("members-detail", "patch"): lambda world: {"role": "admin"},
    ("quota-changes-list", "post"): lambda world: {"cluster": "east", "edits": LOWER, "reason": "drill"},
    ("quota-changes-approve", "post"): lambda world: {},
    ("quota-changes-retry", "post"): lambda world: {},
    ("tokens-list", "post"): lambda world: {"scopes": ["quota:read"]},
    ("users-list", "post"): lambda world: {"username": "mei", "memberships": [{"tenant": "acme"}]},
    ("users-detail", "patch"): lambda world: {"first_name": "Mei"},
    ("users-link", "post"): lambda world: {},
}


def drift(world):
    """Somebody has set the weight of acme's queue in the cluster."""
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


def routes():
    """(name, method) of everything below /api/v1/, from the resolver itself."""
    found = set()

    def walk(patterns):
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns)
            elif isinstance(pattern, URLPattern):
                actions = getattr(pattern.callback, "actions", None)
                view = getattr(pattern.callback, "cls", None) or pattern.callback.view_class
                methods = actions or [name for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)]
                found.update((pattern.name, method) for method in methods if method != "head")  # goes with GET

    for resolver in get_resolver().url_patterns:
        if isinstance(resolver, URLResolver) and resolver.namespace == "api":
            walk(resolver.url_patterns)
    return found


def test_every_route_is_in_the_matrix_and_nothing_else_is():
    assert routes() == set(MATRIX)


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
    if name.startswith("schema"):
        return "/api/v1/schema/" + ("docs/" if name == "schema-docs" else "")
    resource, _, act = name.rpartition("-")
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
        alert = Alert.objects.get_or_create(cluster=east, key="drill", defaults=said)[0]
        return f"/api/v1/alerts/{alert.pk}/" + ("" if act == "detail" else f"{act}/")
    if resource == "tokens":
        world.token("owner", "quota:read")
        return world.client("admin").read("tokens/", user="owner")["results"][0]["url"]
    return f"/api/v1/{resource}/{pk[resource]}/" + ("" if act == "detail" else f"{act}/")


def call(world, caller, name, method):
    client, url = world.client(caller), address(world, name)
    if method == "get":
        return client.get(url).status_code
    body = BODIES.get((name, method), lambda world: {"reason": "drill"})(world)
    headers = {"If-Match": "*"}  # what was looked at is another test's question
    answer = client.generic(method.upper(), url, orjson.dumps(body), "application/json", headers=headers)
    return answer.status_code


@pytest.mark.parametrize(("name", "method"), sorted(MATRIX))
def test_the_matrix_holds_for_people(world, name, method):
    answers = {}
    for caller in CAST:
        with transaction.atomic():  # each starts from the same world
            answers[caller] = call(world, caller, name, method)
            transaction.set_rollback(True)
    assert answers == MATRIX[name, method][0]


@pytest.mark.parametrize("caller", TOKENS)
def test_the_matrix_holds_for_scoped_tokens(world, caller):
    """A token of the owner may with the right scope what the owner may, and without it nothing (403)."""
    scope = caller.removeprefix("token:")
    for (name, method), (people, scopes) in sorted(MATRIX.items()):
        allowed = scopes is None or scope == "admin" or scope in scopes
        with transaction.atomic():
            got = call(world, caller, name, method)
            transaction.set_rollback(True)
        assert got == (people["owner"] if allowed else 403), (name, method)


def test_a_token_for_one_tenant_sees_nothing_else_even_of_an_admin(world):
    from tests.api.cast import ApiClient

    client = ApiClient(token=world.token("admin", "admin", tenant="rival"))
    assert [row["slug"] for row in client.read("tenants/")["results"]] == ["rival"]
    assert [row["slug"] for row in client.read("clusters/")["results"]] == ["east"]
    assert client.get(f"/api/v1/queues/{world.queues['acme-online'].pk}/").status_code == 404
    assert client.send(f"clusters/{world.clusters['east'].pk}/pause/", {"reason": "drill"}).status_code == 403
    made = client.send("tokens/", {"scopes": ["admin"]})
    assert made.json()["tenant"]["slug"] == "rival"  # a limited token makes only tokens of its own limit
    assert client.send("tokens/", {"scopes": ["admin"], "tenant": "acme"}).status_code == 400


def test_a_token_never_makes_one_that_may_more(world):
    from tests.api.cast import ApiClient

    client = ApiClient(token=world.token("teammate", "admin"))
    made = client.send("tokens/", {"scopes": ["admin"]}).json()["token"]
    pause = f"clusters/{world.clusters['east'].pk}/pause/"
    assert ApiClient(token=made).send(pause, {"reason": "x"}).status_code == 403
