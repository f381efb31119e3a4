"""allauth counts; here no address locks others out: failures at an account count for the address they come from."""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from allauth.core.internal import ratelimit
from django.core.cache import cache
from django.http import HttpRequest

from tidesched_web.accounts.names import folded

APP = "allauth.account"
EVERYBODY = "everybody"
KNOWN_SECONDS = 30 * 24 * 3600


@dataclass
class Try:
    used: list[Any] = field(default_factory=list)
    refused: str = ""
    wait: int = 0

    def take_back(self) -> None:
        """It was right, or was refused: it counts for no limit."""
        for usage in self.used:
            usage.rollback()


def counted(request: HttpRequest, name: str) -> Try:
    """Count a try to sign in as ``name``. A refused one uses nothing up: its password is not looked at."""
    made = _counted(request, name)
    if made.refused:
        made.take_back()
    return made


def _counted(request: HttpRequest, name: str) -> Try:
    made = Try()
    pair, account = _pair(request, name), f"account {folded(name)}"
    if not _take(made, request, "login_failed", pair):
        return made
    known = cache.get(_known(pair)) is not None
    slowed = not _take(made, request, "login_account", account, refuse=False) and not known
    if not slowed or _take(made, request, "login_spacing", pair):
        _take(made, request, "login_all", EVERYBODY, refuse=not known)
    return made


def remember(request: HttpRequest, name: str) -> None:
    cache.set(_known(_pair(request, name)), 1, timeout=KNOWN_SECONDS)


def counted_change(request: HttpRequest) -> Try:
    made = Try()
    _take(made, request, "change_password", None)
    return made


def seconds_to_wait(request: HttpRequest, action: str, key: str | None = None) -> int:
    now, wait = time.time(), 1.0
    for rate in ratelimit.get_rates(app=APP, action=action):
        history = cache.get(ratelimit.get_cache_key(request, app=APP, action=action, rate=rate, key=key), [])
        if len(history) >= rate.amount:  # newest first: this one has to be over
            wait = max(wait, history[rate.amount - 1] + rate.duration - now)
    return int(-(-wait // 1))


def _take(made: Try, request: HttpRequest, action: str, key: str | None, *, refuse: bool = True) -> bool:
    # A limit of several rates takes from one after the other, and keeps what it took where a later one refuses: so all
    # of them are asked first.
    usage = ratelimit.consume(request, app=APP, action=action, key=key, limit_get=True, dry_run=True)
    if usage is not None:
        usage = ratelimit.consume(request, app=APP, action=action, key=key, limit_get=True)
    if usage is None:
        if refuse:
            made.refused, made.wait = action, seconds_to_wait(request, action, key)
        return False
    made.used.append(usage)
    return True


def _pair(request: HttpRequest, name: str) -> str:
    return f"{ratelimit.get_ip(request)} {folded(name)}"


def _known(pair: str) -> str:
    return f"sign-in:known:{hashlib.sha256(pair.encode()).hexdigest()}"
