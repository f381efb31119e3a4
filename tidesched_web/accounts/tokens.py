"""The form of API tokens: ``tide_`` and 43 characters (256 random bits). Only a SHA-256 of them is kept."""

import datetime as dt
import hashlib
import re
import secrets
from collections.abc import Iterable

from tidesched_web.accounts.models import Scope
from tidesched_web.common.errors import DomainError

_UNIT = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
PREFIX_LENGTH = 12


def new_token() -> str:
    return f"tide_{secrets.token_urlsafe(32)}"


def new_link_secret() -> str:
    """The secret part of an invitation or reset link: 256 random bits, letters that an address can hold."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is stored and looked up. No salt: 256 random bits cannot be guessed."""
    return hashlib.sha256(token.encode()).hexdigest()


def parse_scopes(words: Iterable[str]) -> list[str]:
    wanted = set(words)
    unknown = sorted(wanted.difference(Scope.values))
    if unknown:
        raise DomainError.for_field(
            "/scopes",
            f"Unknown scope {unknown[0]!r}. Known scopes: {', '.join(Scope.values)}.",
            code="unknown_scope",
            known=list(Scope.values),
        )
    if not wanted:
        raise DomainError.for_field("/scopes", f"At least one scope is needed: {', '.join(Scope.values)}.")
    return [scope for scope in Scope.values if scope in wanted]


def parse_lifetime(text: str) -> dt.timedelta:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text.strip())
    if not match:
        raise DomainError.for_field(
            "/expires", f"{text!r} is no life time: a number and m, h, d or w, for instance 90d or 12h."
        )
    return dt.timedelta(seconds=int(match[1]) * _UNIT[match[2]])
