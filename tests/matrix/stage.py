"""One world with one object of each kind, the callers, and the address of each route about those objects.

Tenant *acme* owns the objects; tenant *rival* shares its cluster *east*, tenant *far* has cluster *west* alone. An
address is made from the route's own parameters, so that a route that the resolver has and this file cannot fill fails.
"""

from __future__ import annotations

import copy
import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from allauth.mfa.models import Authenticator
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver
from django.utils import timezone

from tests import quota_writes
from tests.api import cast
from tests.quota_writes import write_tide_plan
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import AccessLink, ApiToken, IdentityProvider, Membership, SignInRule
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit import segment_services
from tidesched_web.audit import services as audit
from tidesched_web.changes import services as changes
from tidesched_web.clusters import connection_services
from tidesched_web.clusters.connection_input import by_token
from tidesched_web.clusters.models import Cluster
from tidesched_web.jobs.services import enqueue
from tidesched_web.quota.models import Drift
from tidesched_web.scheduling.models import Alert
from tidesched_web.workloads.models import Gang

H200 = cast.H200
# A quota admin is a platform admin: there is no role between that and the admin of a tenant.
PEOPLE = ("anonymous", "no-role", "member", "tenant-admin", "other-admin", "far-admin", "auditor", "platform-admin")
# Tokens of others, with one scope each: they do what their user does, as far as the scope goes.
OWNED = tuple(
    f"token:{scope} of {person}"
    for person, scopes in {
        "member": ("quota:read", "quota:write"),
        "tenant-admin": ("quota:write", "cluster:read", "admin"),
        "auditor": ("audit:read", "quota:write"),
    }.items()
    for scope in scopes
)
DEAD = ("token:expired", "token:revoked", "token:unknown", "token:inactive")
NAMES = {
    "no-role": "newcomer",
    "member": "teammate",
    "tenant-admin": "owner",
    "other-admin": "rival-admin",
    "far-admin": "stranger",
    "auditor": "auditor",
    "platform-admin": "admin",
}
NIGHT = {"days": ["mon"], "start": "22:00", "end": "07:00", "quota": {"acme-online": {H200: {"add": -1}}}}
SECRET = "a-secret-of-the-browser"
# What an answer to those who see nothing of acme never holds.
HIDDEN_OF_PLATFORM = ("commons-train", "commons-line", "commons-llm", "drill of the platform")
HIDDEN = ("acme-online", "acme-train", "acme-chat", "acme-research", "nights-of-acme", "a note of acme")


@dataclass(frozen=True)
class Route:
    """One address of the resolver."""

    name: str
    pattern: str
    methods: tuple[str, ...]


def routes() -> Iterator[Route]:
    """Every address that the resolver knows, with the methods that its view has."""

    def walk(entries: list[Any], namespace: str, before: str) -> Iterator[Route]:
        for entry in entries:
            text = before + str(entry.pattern)
            if isinstance(entry, URLResolver):
                yield from walk(entry.url_patterns, entry.namespace or namespace, text)
            elif isinstance(entry, URLPattern):
                name = entry.name or re.sub(r"\W+", "_", text).strip("_")
                yield Route(f"{namespace}:{name}" if namespace else name, text, _methods(entry))

    yield from walk(get_resolver().url_patterns, "", "")


def _methods(entry: URLPattern) -> tuple[str, ...]:
    actions = getattr(entry.callback, "actions", None)
    view = getattr(entry.callback, "cls", None)
    if actions is None and view is None:
        return ("get", "post")
    found = actions or [name for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)]
    return tuple(sorted(set(found) - {"head", "options"}))


class Stage:
    """The world, with what the addresses name."""

    def __init__(self) -> None:
        self.world = world = cast.build()
        users, tenants = world.users, world.tenants
        for name in ("newcomer", "rival-admin"):
            users[name] = accounts.create_user(username=name, password=None, actor="tests")
        accounts.set_membership(user=users["rival-admin"], tenant=tenants["rival"], role="admin", actor="tests")
        acme, east = tenants["acme"], world.clusters["east"]
        invited, _link, self.secret = accounts.invite_user(
            username="ida", actor="tests", memberships={acme: "member"}, of_tenant=acme
        )
        self.keys = _objects(world)
        queue = world.queues["acme-online"]
        self.keys |= {
            "tenants": acme.pk,
            "clusters": east.pk,
            "projects": acme.projects.get().pk,
            "business-lines": acme.business_lines.get().pk,
            "queues": queue.pk,
            "card-types": east.card_types.first().pk,
            "priority-classes": east.priority_classes.first().pk,
            "gangs": world.gangs["web"].pk,
            "reclaims": world.reclaim.pk,
            "sessions": world.session.pk,
            "nodes": east.nodes.first().pk,
            "members": Membership.objects.get(user=users["teammate"]).pk,
            "invited": invited.memberships.get().pk,
            "grants": world.grant.pk,
            "users": users["teammate"].pk,
            "links": AccessLink.objects.get(user=invited).pk,
            "passkeys": Authenticator.objects.create(user=invited, type="webauthn", data={"name": "phone"}).pk,
        }
        self.names = _NAME_BY_BEGINNING
        self.of_platform = _of_platform(world)
        self.keys["platform-alert"] = self.of_platform["alerts"]
        self.texts = {
            "slug": "east",
            "tenant": "acme",
            "namespace": "acme",
            "secret": self.secret,
            "project": "acme-chat",
            "mode": "observe",
            "provider": "corp",
            "provider_id": "corp",
            "priority_class": east.priority_classes.first().name,
        }
        # What the page of each form says of the version of its object; whatever is asked is taken back.
        self.versions: dict[str, dict[str, str]] = {}
        self._clients: dict[str, Client] = {}

    def platforms(self) -> Stage:
        """The same stage, whose addresses name the queue of the platform and what hangs on it."""
        other = copy.copy(self)
        other.keys = self.keys | self.of_platform
        other.names = self.names | {"queue": "commons-train", "gang": "commons-llm"}
        other.texts = self.texts | {"namespace": "commons"}
        other.versions = {}
        return other

    def client(self, caller: str) -> Client:
        """A client of one of the callers; signed in once."""
        if caller not in self._clients:
            self._clients[caller] = self._made(caller)
        return self._clients[caller]

    def _made(self, caller: str) -> Client:
        if not caller.startswith("token:"):
            return cast.ApiClient(self.world.users.get(NAMES.get(caller, "")))
        kind = caller.removeprefix("token:")
        if kind == "unknown":
            return cast.ApiClient(token="tide_" + "0" * 40)
        if kind == "rival-only":
            return cast.ApiClient(token=self.world.token("admin", "admin", tenant="rival"))
        if " of " in kind:
            scope, _of, person = kind.partition(" of ")
            return cast.ApiClient(token=self.world.token(NAMES[person], scope))
        if kind not in ("expired", "revoked", "inactive"):
            return cast.ApiClient(token=self.world.token("admin", *kind.split("+")))
        user = accounts.create_user(username=f"of-{kind}", password=None, platform_role="admin", actor="tests")
        token, plain = accounts.create_token(user=user, scopes=["admin"], actor="tests")
        now = timezone.now()
        if kind == "inactive":
            type(user).objects.filter(pk=user.pk).update(is_active=False)
        else:
            ApiToken.objects.filter(pk=token.pk).update(**{f"{kind}_at" if kind == "revoked" else "expires_at": now})
        return cast.ApiClient(token=plain)


def _objects(world: cast.World) -> dict[str, int]:
    """One of each of what the API's cast lacks."""
    acme, east, queue = world.tenants["acme"], world.clusters["east"], world.queues["acme-online"]
    admin = access_of(world.users["admin"])
    edits = {"queue/acme-online": {"card_quota": {H200: 5}}}
    change = changes.draft(cluster=east, edits=edits, access=admin, reason="a note of acme", source="api")
    waits = changes.draft(cluster=east, edits=edits, access=admin, reason="a note of acme", source="api")
    plan = write_tide_plan(cluster=east, name="nights-of-acme", document={"layers": [NIGHT]}, actor="tests")
    job = enqueue(kind="impact", owner=world.users["owner"], actor="owner", params={}, cluster=east)
    trial = enqueue(kind="impact_day", owner=world.users["admin"], actor="admin", params={}, cluster=east)
    now = timezone.now()
    drift = Drift.objects.create(
        cluster=east, kind="Queue", name="acme-online", queue=queue, what="changed", found_at=now, changed_at=now,
        live={"kind": "Queue", "metadata": {"name": "acme-online"}, "spec": {"weight": 7}},
        fields=[
            {
                "field": "spec.weight", "intent": "1", "pushed": "1", "live": "7", "changed_by": "kubectl",
                "changed_at": "",
            }
        ],
    )  # fmt: skip
    alert = Alert.objects.create(
        cluster=east, key="drill", severity="warning", code="node_lost", message="drill", raised_at=now
    )
    entry = audit.append(
        chain="platform", actor="a", action="tenant.update", object_type="tenant", object_id=acme.pk,
        tenant_ids=[acme.pk], reason="a note of acme",
    )  # fmt: skip
    with patch.object(segment_services, "YOUNGEST", dt.timedelta(0)):
        segment = segment_services.seal(before=timezone.now(), actor="tests")[0]
    segment_services.mark_exported(segment=segment, actor="tests")
    entry = audit.append(
        chain="platform", actor="a", action="tenant.update", object_type="tenant", object_id=acme.pk,
        tenant_ids=[acme.pk], reason="a note of acme",
    )  # fmt: skip
    token, _plain = accounts.create_token(user=world.users["owner"], scopes=["quota:read"], actor="tests")
    facts = {"slug": "corp", "name": "Corp", "issuer": "http://127.0.0.1:9", "client_id": "x", "enabled": False}
    provider = IdentityProvider.objects.create(**facts)
    rule = SignInRule.objects.create(provider=provider, value="gpu-admins", role="admin")
    return {
        "quota-changes": change.pk, "waiting-change": waits.pk, "tide-plans": plan.pk, "jobs": job.pk,
        "trials": trial.pk, "drift": drift.pk, "alerts": alert.pk, "audit": entry.pk, "segment": segment.pk,
        "tokens": token.pk, "offer": _offer(None).pk, "other-offer": _offer(east).pk,
        "sign-in-rules": rule.pk,
    }  # fmt: skip


def _of_platform(world: cast.World) -> dict[str, int]:
    """A training queue of no tenant in the shared cluster, with a gang, a namespace and a drift."""
    east = world.clusters["east"]
    line = quota_writes.ensure_business_line(tenant=None, slug="commons-line", actor="tests")
    queue = quota_writes.create_queue(
        cluster=east, name="commons-train", service_type="training", business_line=line, card_quota={cast.A100: 2},
        actor="tests",
    )  # fmt: skip
    quota_writes.ensure_grant(queue=queue, namespace="commons", actor="tests")
    now = timezone.now()
    gang = Gang.objects.create(
        cluster=east, namespace="commons", name="commons-llm", uid="uid-spare", queue=queue, queue_name=queue.name,
        service_type="training", min_member=1, phase="Pending", state="waiting", needs=True, cards={cast.A100: 1},
        waiting_since=cast.NOON, submitted_at=cast.NOON, seen_at=now, reason_code="WaitingForCards",
        reason_numbers={"resource": cast.A100, "requested": 1.0, "free": 0.0}, reason_message="1 card is asked for.",
    )  # fmt: skip
    drift = Drift.objects.create(
        cluster=east, kind="Queue", name=queue.name, queue=queue, what="changed", found_at=now, changed_at=now,
        live={"kind": "Queue", "metadata": {"name": queue.name}, "spec": {"weight": 7}}, fields=[],
    )  # fmt: skip
    alert = Alert.objects.create(
        cluster=None,
        key="drill",
        severity="warning",
        code="audit_broken",
        message="drill of the platform",
        raised_at=now,
    )
    return {
        "queues": queue.pk, "business-lines": line.pk, "gangs": gang.pk, "grants": queue.namespace_grants.get().pk,
        "drift": drift.pk, "alerts": alert.pk,
    }  # fmt: skip


def _offer(cluster: Cluster | None) -> Any:
    given = by_token(api_url="https://10.0.0.9:6443", token=SECRET)
    return connection_services.offer(offered=given, mode="observe", actor="tests", owner_id=None, cluster=cluster)


# Of the console: route → whose key its `pk` is. By the beginning of the name where nothing else is said.
_KEY_OF = {
    "cluster_offer": "offer", "connection_offer": "other-offer", "connection_tested": "other-offer",
    "member_link": "invited", "audit_entry": "audit", "audit_drop": "segment",
    "resolve_platform_alert": "platform-alert", "acknowledge_platform_alert": "platform-alert",
    "policy_trial": "trials",
}  # fmt: skip
_KEY_BY_BEGINNING = {
    "gang": "gangs", "reclaim": "reclaims", "resolve": "alerts", "acknowledge": "alerts", "member": "members",
    "business_line": "business-lines", "user": "users", "grant": "grants", "card_type": "card-types",
    "change": "quota-changes", "job": "jobs", "token": "tokens", "mfa": "passkeys",
    "sign_in_rule": "sign-in-rules",
}  # fmt: skip
_NAME_BY_BEGINNING = {
    "queue": "acme-online", "gang": "web", "tide_plan": "nights-of-acme", "priority_class": "pc-low",
}  # fmt: skip
# Parameters without which an address says nothing.
_QUERIES = {
    "api:usage": lambda stage: f"?queue={stage.keys['queues']}",
    "console:quota_branch": lambda stage: f"?service_type=inference&tenant={stage.keys['tenants']}",
    "console:connection_replace": lambda _: "?way=token",
    "console:cluster_new": lambda _: "?way=token",
}


def address(stage: Stage, route: Route) -> str:
    """Where the route is for the objects of the stage."""
    namespace, _, name = route.name.rpartition(":")

    def fill(match: re.Match[str]) -> str:
        parameter = match[1].rpartition(":")[2]
        return str(_value(stage, namespace, name, parameter))

    path = "/" + re.sub(r"<([^>]+)>", fill, route.pattern)
    return path + _QUERIES.get(route.name, lambda _: "")(stage)


def _value(stage: Stage, namespace: str, name: str, parameter: str) -> Any:
    if namespace == "api":
        resource = next(key for key in sorted(stage.keys, key=len, reverse=True) if name.startswith(key))
        return stage.keys["segment" if parameter == "segment" else resource]
    if parameter == "pk":
        found = _KEY_OF.get(name) or _begins(_KEY_BY_BEGINNING, name)
        return stage.keys[found]
    if parameter == "name":
        return _begins(stage.names, name)
    if parameter == "number":
        return 1 if name.startswith("policy") else stage.world.session.number
    if parameter == "verb":
        return "apply"
    if parameter == "rest":
        return "nowhere"
    return stage.texts[parameter]


def _begins(table: dict[str, str], name: str) -> str:
    return next(found for beginning, found in table.items() if name.startswith(beginning))
