"""A person's or a platform's HTTP client: each answer goes to the ledger."""

from __future__ import annotations

import html
import re
import time
import uuid
from typing import Any

import httpx

from tests.crew.ledger import UNEXPECTED, UNREACHABLE, Ledger

_INPUT = re.compile(r"<input\b[^>]*>")
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
# A fault may take the database or Redis away for a while; who retries does so for as long.
PATIENCE_SECONDS = 150.0


def fields_of(text: str) -> list[dict[str, str]]:
    """The input elements of a page, as their attributes."""
    return [{name: html.unescape(value) for name, value in _ATTRIBUTE.findall(tag)} for tag in _INPUT.findall(text)]


class Refused(Exception):
    """An answer that a person cannot go on with."""


class WebClient:
    """One caller. ``address_from``: the local address that it calls from; ``behaved``: it keeps to its manners."""

    def __init__(
        self,
        base: str,
        person: str,
        ledger: Ledger,
        *,
        token: str = "",
        address_from: str = "",
        behaved: bool = True,
        cookies: dict[str, str] | None = None,
    ) -> None:
        self.base, self.person, self.ledger, self.behaved = base, person, ledger, behaved
        # Sooner than the server closes an idle connection: else one now and then breaks under a request.
        limits = httpx.Limits(keepalive_expiry=2.0)
        transport = httpx.HTTPTransport(local_address=address_from or None, limits=limits)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(
            cookies=cookies, base_url=base, transport=transport, timeout=60, headers=headers, follow_redirects=False
        )

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def ask(self, method: str, path: str, *, page: str, expected: tuple[int, ...] = (), **more: Any) -> httpx.Response:
        """One request. An answer of 4xx that is not ``expected`` is a trouble of a well-behaved client.

        Raises:
            httpx.TransportError: no answer came.
        """
        began, clock = time.time(), time.perf_counter()
        try:
            answer = self._client.request(method, path, **more)
        except httpx.TransportError as error:
            if self.behaved:
                self.ledger.trouble(
                    UNREACHABLE, self.person, f"{method} {path}", repr(error)[:200], write=method != "GET", at=began
                )
            raise
        self.ledger.answered(
            person=self.person,
            page=page,
            where=path,
            method=method,
            status=answer.status_code,
            began=began,
            seconds=time.perf_counter() - clock,
            size=len(answer.content),
            headers=dict(answer.headers),
            text=answer.text if answer.status_code >= 429 else "",
            behaved=self.behaved,
        )
        status = answer.status_code
        if self.behaved and 400 <= status < 500 and status != 429 and status not in expected:
            detail = f"→ {status} {answer.headers.get('x-request-id', '')} {answer.text[:300]}"
            self.ledger.trouble(UNEXPECTED, self.person, f"{method} {path}", detail, at=began)
        return answer

    def get(self, path: str, *, page: str, expected: tuple[int, ...] = ()) -> httpx.Response:
        """Read; where no answer comes or the product says to come again, come again."""
        return self.retried("GET", path, page=page, expected=expected)

    def retried(
        self, method: str, path: str, *, page: str, expected: tuple[int, ...] = (), **more: Any
    ) -> httpx.Response:
        """As a good client does: a write carries an Idempotency-Key, and 503 and a lost connection are tried again."""
        if method == "POST":
            more["headers"] = {"Idempotency-Key": uuid.uuid4().hex, **more.get("headers", {})}
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self.ask(method, path, page=page, expected=expected, **more)
                if answer.status_code not in (429, 503) or time.monotonic() > until:
                    return answer
                wait = float(answer.headers.get("retry-after", "5"))
            except httpx.TransportError:
                if time.monotonic() > until:
                    raise
                wait = 2.0
            time.sleep(min(wait, 15.0))

    def rows(self, path: str, *, page: str) -> list[dict[str, Any]]:
        """All rows of a list."""
        found: list[dict[str, Any]] = []
        following: str | None = path
        while following:
            body = self.get(following, page=page).json()
            found += body["results"]
            following = body["next"] and body["next"].removeprefix(self.base)
        return found

    def submit(self, path: str, values: dict[str, str], *, page: str, expected: tuple[int, ...] = ()) -> httpx.Response:
        """Open a page with one form and send it with these values; fields keep what they hold."""
        opened = self.get(path, page=page)
        sent = {one["name"]: one.get("value", "") for one in fields_of(opened.text) if one.get("type") == "hidden"}
        return self.ask("POST", path, page=page, expected=expected, data=sent | values)

    def sign_in(self, name: str, password: str, *, expected: tuple[int, ...] = ()) -> bool:
        """By the form: the first text field takes the name, the first password field the password."""
        opened = self.get("/sign-in/", page="page sign-in")
        values = {}
        # The first form: below it the demo offers its own people.
        for one in fields_of(opened.text.partition("</form>")[0]):
            kind = one.get("type", "text")
            if kind == "hidden" and "name" in one:
                values[one["name"]] = one.get("value", "")
            elif kind in ("text", "email") and "name" in one:
                values.setdefault(one["name"], name)
            elif kind == "password":
                values.setdefault(one["name"], password)
        sent = self.ask("POST", "/sign-in/", page="form sign-in", expected=expected, data=values)
        return sent.status_code == 302

    def cookies(self) -> dict[str, str]:
        """What a browser of the same person would send."""
        return dict(self._client.cookies.items())

    def csrf(self) -> dict[str, str]:
        """The header of a write by REST of one who is signed in."""
        return {"X-CSRFToken": self._client.cookies.get("csrftoken", "")}


def needed(answer: httpx.Response, *statuses: int) -> Any:
    """The document of an answer with one of these statuses.

    Raises:
        Refused: it has another one.
    """
    if answer.status_code not in statuses:
        raise Refused(f"{answer.request.method} {answer.request.url.path} → {answer.status_code}: {answer.text[:500]}")
    return answer.json() if answer.content else None
