"""Whose request it is, before anybody has looked the account up: enough to share turns fairly, and for nothing else.

A session or token that Django has accepted once counts as its account, so that ten sessions of one account are one
person. One that nobody has accepted yet is a person of its own, and a request with neither is its address.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from http.cookies import CookieError, SimpleCookie

from django.conf import settings

from tidesched_web.common import request_context
from tidesched_web.front import Scope

MOST_KNOWN = 10_000


class Persons:
    """Remembers which account each session and token of late belongs to."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, str] = OrderedDict()

    def of(self, scope: Scope) -> tuple[str, bytes]:
        """The person of a request, and the digest of what it came with (empty without a session or token)."""
        headers = dict(scope["headers"])
        credential = _credential(headers)
        if not credential:
            return f"address {request_context.address_of(scope)}", b""
        digest = hashlib.sha256(credential).digest()
        known = self._known.get(digest)
        if known is None:
            return f"credential {digest.hex()}", digest
        self._known.move_to_end(digest)
        return known, digest

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


def _credential(headers: dict[bytes, bytes]) -> bytes:
    kind, _space, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() == b"bearer":
        return b"token " + token.strip()
    text = headers.get(b"cookie", b"").decode("latin-1")
    if settings.SESSION_COOKIE_NAME not in text:
        return b""
    try:
        found = SimpleCookie(text).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return b""
    return b"session " + found.value.encode() if found is not None else b""
