import hashlib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.sessions.models import Session
from django.db.models import Q
from django.db.models.functions import Now

from tidesched_web.accounts.models import ApiToken, Membership, Scope, User
from tidesched_web.accounts.selectors import access_of, mfa_demanded_of, with_mfa
from tidesched_web.accounts.tokens import token_hash
from tidesched_web.common.permissions import Access

MAY_LISTEN = (Scope.CLUSTER_READ, Scope.QUOTA_READ, Scope.RECLAIM_READ)
# The scopes, any one of which lets a token read the objects of a topic. With others it hears that something changed.
NAMED_TO = {
    "alerts": (Scope.CLUSTER_READ, Scope.RECLAIM_READ),
    "changes": (Scope.QUOTA_READ, Scope.QUOTA_WRITE),
    "clusters": (Scope.CLUSTER_READ, Scope.QUOTA_READ),
    "drift": (Scope.QUOTA_READ, Scope.QUOTA_WRITE),
    "gangs": (Scope.CLUSTER_READ, Scope.QUOTA_READ),
    "jobs": (Scope.QUOTA_READ, Scope.QUOTA_WRITE),
    "nodes": (Scope.CLUSTER_READ,),
    "queues": (Scope.QUOTA_READ,),
    "reclaims": (Scope.RECLAIM_READ,),
    "sessions": (Scope.CLUSTER_READ, Scope.RECLAIM_READ),
    "usage": (Scope.METRICS_READ, Scope.QUOTA_READ),
}


@dataclass(frozen=True, slots=True)
class Caller:
    user_id: int
    session_key: str = ""
    token_hash: str = ""


def caller_of_session(user: User, session_key: str) -> Caller:
    return Caller(user.pk, session_key=session_key)


def caller_of_token(token: ApiToken, plain: str) -> Caller:
    return Caller(token.user_id, token_hash=token_hash(plain))


def standings(callers: Collection[Caller]) -> dict[Caller, str]:
    """For each caller whose session or token is still good, a text that changes with their rights. Four queries."""
    ids = {caller.user_id for caller in callers}
    sessions = {caller.session_key for caller in callers if caller.session_key}
    hashes = {caller.token_hash for caller in callers if caller.token_hash}
    listening = User.objects.filter(pk__in=ids, is_active=True, must_change_password=False)
    people = {user.pk: user for user in with_mfa(listening).order_by()}
    roles: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for user, tenant, role in Membership.objects.filter(user_id__in=people).values_list("user_id", "tenant_id", "role"):
        roles[user][tenant] = role
    live_sessions = (
        set(
            Session.objects.filter(session_key__in=sessions, expire_date__gt=Now()).values_list(
                "session_key", flat=True
            )
        )
        if sessions
        else set()
    )
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=Now())
    live_hashes = (
        set(
            ApiToken.objects.filter(ApiToken.LIVE, unexpired, token_hash__in=hashes).values_list(
                "token_hash", flat=True
            )
        )
        if hashes
        else set()
    )
    found = {}
    for caller in callers:
        person = people.get(caller.user_id)
        if person is None or (caller.session_key and caller.session_key not in live_sessions):
            continue
        if caller.token_hash and caller.token_hash not in live_hashes:
            continue
        held = roles[caller.user_id]
        off = person.local_off and not person.issuer  # type: ignore[attr-defined]  # annotated
        if caller.session_key and (off or mfa_demanded_of(person, held.values())):
            continue
        tenants = sorted(f"{tenant}:{role}" for tenant, role in held.items())
        rights = "\n".join([person.password, person.platform_role, *tenants])
        found[caller] = hashlib.sha256(rights.encode()).hexdigest()
    return found


def access_of_caller(caller: Caller) -> Access | None:
    if not caller.token_hash:
        user = User.objects.filter(pk=caller.user_id, is_active=True).first()
        return access_of(user) if user is not None else None
    token = ApiToken.objects.select_related("user").filter(token_hash=caller.token_hash).first()
    return access_of(token.user, token) if token is not None and token.usable and token.user.is_active else None
