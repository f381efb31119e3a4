"""What comes without an account is bounded: a million tries are counted in Redis and cost a handful of entries."""

import time
from collections.abc import Mapping
from functools import cache as once
from typing import Any

import redis
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from tidesched_web.accounts.models import SignInSettings, User
from tidesched_web.accounts.selectors import user_actor, user_by_name
from tidesched_web.audit import services as audit
from tidesched_web.common import request_context
from tidesched_web.common.actors import ANONYMOUS, SYSTEM, Actor, ActorKind

ENTRIES_PER_MINUTE = 30
LONGEST_NAME = 64
MOST_ADDRESSES = 50
REST, TAKEN = "tidesched:sign-ins:rest", "tidesched:sign-ins:taken"
LIMITS = {
    "login": "tries of one address",
    "login_failed": "failed tries of one address, or of one address at one account",
    "login_account": "failed tries at one account",
    "login_spacing": "pause between tries at an account with many failures",
    "login_all": "failed tries in all",
    "change_password": "tries at the present password",
}


def record_sign_in(*, user: User) -> None:
    _append(user_actor(user), "user.sign_in", user.pk, user.get_username())


def record_sign_out(*, user: User) -> None:
    _append(user_actor(user), "user.sign_out", user.pk, user.get_username())


def record_break_glass(*, user: User) -> None:
    """The console raises an alert of it (`scheduling.pipeline.sign_in_alerts`)."""
    used = {"break_glass_used_at": timezone.now(), "break_glass_used_by": user.get_username()}
    SignInSettings.objects.update(**used)
    _append(user_actor(user), "user.break_glass", user.pk, user.get_username())


def record_refusal(*, provider: str, why: str, said: str) -> None:
    """What a provider sent did not sign anybody in, or an account may not come in this way."""
    if _within_budget("refusals"):
        _append(ANONYMOUS, "user.sign_in_refused", "", "", after={"provider": provider, "why": why, "said": said[:300]})
    else:
        _count("user.sign_in_refused")


def record_failure(*, name: str, action: str = "user.sign_in_failed") -> None:
    """A wrong password, or a name that no account has: recorded as it was tried, cut to `LONGEST_NAME` characters."""
    if _within_budget("failures"):
        _append(*_tried(name, action))
    else:
        _count(action)


def record_limit(*, name: str, limit: str, wait: int, action: str = "user.sign_in_limited") -> None:
    """A try was refused unread; one entry a minute for each address and limit."""
    address = request_context.current().address
    if cache.add(f"sign-ins:limit:{limit}:{address}", 1, timeout=60) and _within_budget("limits"):
        _append(*_tried(name, action), after={"limit": LIMITS.get(limit, limit), "seconds_to_wait": wait})
    else:
        _count(action)


def record_rest() -> bool:
    client = _client()
    if not client.exists(TAKEN):
        try:
            client.rename(REST, TAKEN)  # from here on counting begins anew
        except redis.ResponseError:
            return False
    counted = {str(key): int(value) for key, value in client.hgetall(TAKEN).items()}
    acts = {key: count for key, count in counted.items() if not key.startswith("from ")}
    addresses = {key.removeprefix("from "): count for key, count in counted.items() if key.startswith("from ")}
    most = dict(sorted(addresses.items(), key=lambda row: (-row[1], row[0]))[:20])
    after = {"counts": acts, "addresses": most, "addresses_seen": len(addresses)}
    _append(SYSTEM, "user.sign_ins_counted", "", "", after=after)
    client.delete(TAKEN)
    return True


def _append(
    actor: Actor, action: str, object_id: object, label: str, *, after: Mapping[str, Any] | None = None
) -> None:
    audit.append(
        chain=audit.PLATFORM_CHAIN,
        actor=actor,
        action=action,
        object_type="user",
        object_id=object_id,
        object_label=label,
        after=after,
    )


def _tried(name: str, action: str) -> tuple[Actor, str, object, str]:
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    if len(shown) > LONGEST_NAME:
        shown = f"{shown[: LONGEST_NAME - 1]}…"
    user = user_by_name(name) if "\0" not in name else None  # PostgreSQL's text holds no such letter
    if user is None:
        return ANONYMOUS, action, "", shown
    return Actor(user.get_username(), ActorKind.ACCOUNT, user.pk), action, user.pk, user.get_username()


def _within_budget(kind: str) -> bool:
    key = f"sign-ins:{kind}:{int(time.time() // 60)}"
    cache.add(key, 0, timeout=120)
    try:
        return int(cache.incr(key)) <= ENTRIES_PER_MINUTE
    except ValueError:  # the cache was emptied in between
        return True


def _count(action: str) -> None:
    address, client = request_context.current().address, _client()
    client.hincrby(REST, action, 1)
    if client.hexists(REST, f"from {address}") or client.hlen(REST) < MOST_ADDRESSES:
        client.hincrby(REST, f"from {address}", 1)


@once
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=2, decode_responses=True)
