"""Whose request it is, before the account has been looked up: enough to share turns fairly, and for nothing else.

A session or token that Django has accepted once counts as its account, so that ten sessions of one account are one
person. All others are strangers. One without either is its address; one with a session or token that was not accepted
yet is a share of its address: an address has few of them, however many sessions it makes up, and the people behind one
proxy still do not all wait in one line after a restart.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

from django.conf import settings

from tidesched_web.common import request_context
from tidesched_web.common.client_address import counted_as
from tidesched_web.front import Scope

MOST_KNOWN = 10_000
SHARES_OF_AN_ADDRESS = 8


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a request counts for, and the digest of the session or token that it came with (empty without one)."""

    name: str
    stranger: bool
    digest: bytes = field(default=b"", compare=False)


class Persons:
    """Remembers which account each session and token of late belongs to."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, str] = OrderedDict()

    def of(self, scope: Scope) -> Person:
        headers = dict(scope["headers"])
        credential = _credential(headers, scope["path"])
        address = counted_as(request_context.address_of(scope))
        if not credential:
            return Person(f"address {address}", stranger=True)
        digest = hashlib.sha256(credential).digest()
        known = self._known.get(digest)
        if known is None:
            share = digest[0] % SHARES_OF_AN_ADDRESS
            return Person(f"address {address} share {share}", stranger=True, digest=digest)
        self._known.move_to_end(digest)
        return Person(known, stranger=False, digest=digest)

    def learn(self, digest: bytes, account: int | None) -> None:
        """Remember that this session or token was accepted for an account; None forgets it."""
        if not digest:
            return
        if account is None:
            self._known.pop(digest, None)
            return
        self._known[digest] = f"account {account}"
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


def without_quoted_cookies(scope: Scope) -> Scope:
    """The request without cookies in quotes: none of ours is, and to read one takes the square of its length."""
    headers = scope["headers"]
    if not any(name == b"cookie" and b'"' in value for name, value in headers):
        return scope
    kept = [
        (name, b";".join(piece for piece in value.split(b";") if b'"' not in piece) if name == b"cookie" else value)
        for name, value in headers
    ]
    return {**scope, "headers": kept}


def _credential(headers: dict[bytes, bytes], path: str) -> bytes:
    """What the request will be accepted by: a token below /api/, where it has one, and else its session.

    With any other choice an account that is signed in could come as a stranger by a token that it made up.
    """
    kind, _space, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() == b"bearer" and path.startswith("/api/"):
        return b"token " + token.strip()
    for piece in headers.get(b"cookie", b"").split(b";"):
        name, _equals, value = piece.partition(b"=")
        if name.strip() == settings.SESSION_COOKIE_NAME.encode():
            return b"session " + value.strip()
    return b""
