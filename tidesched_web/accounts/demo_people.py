"""Passwords are offered at sign-in only while nobody but the machine itself can reach a simulated demo."""

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from tidesched_web.accounts.models import PlatformRole

FILE: Final = "demo-people.json"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class DemoPerson:
    username: str
    part: str
    platform_role: PlatformRole = PlatformRole.NONE
    tenant: str = ""


PEOPLE: Final = (
    DemoPerson("quota-admin", "quota admin", PlatformRole.ADMIN),
    DemoPerson("ember-admin", "tenant admin", tenant="ember"),
    DemoPerson("auditor", "auditor", PlatformRole.AUDITOR),
)


@dataclass(frozen=True)
class Offered:
    username: str
    part: str
    password: str


def kept() -> list[Offered]:
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
        return [Offered(**row) for row in json.loads((settings.DATA_DIR / FILE).read_text())]
    return []


def keep(people: list[Offered]) -> None:
    target = settings.DATA_DIR / FILE
    if not people:
        target.unlink(missing_ok=True)
        return
    fresh = target.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump([asdict(person) for person in people], file)
        file.write("\n")
    fresh.replace(target)


def invented() -> list[Offered]:
    return [Offered(person.username, person.part, secrets.token_urlsafe(12)) for person in PEOPLE]


# What a proxy adds to the requests that it forwards, whatever it makes of their Host.
_FORWARDED = (
    "HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_FORWARDED_PORT", "HTTP_X_FORWARDED_SERVER", "HTTP_X_REAL_IP", "HTTP_X_ORIGINAL_HOST", "HTTP_X_CLIENT_IP",
    "HTTP_TRUE_CLIENT_IP", "HTTP_CF_CONNECTING_IP", "HTTP_VIA",
)  # fmt: skip


def may_be_offered(headers: Mapping[str, object]) -> bool:
    """A public name says that others reach it, by a proxy or a tunnel, even where no proxy was named."""
    # On the machine itself a proxy may name 127.0.0.1 as Host to this server.
    if any(name in headers for name in _FORWARDED):
        return False
    alone = settings.EMBEDDED and settings.DEMO and settings.SECURE_PROXY_SSL_HEADER is None
    names = {settings.LISTENS_ON, urlsplit(settings.PUBLIC_URL).hostname, *settings.ALLOWED_HOSTS}
    return alone and {str(name).strip("[]") for name in names} <= _LOOPBACK
