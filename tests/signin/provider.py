"""A small OIDC provider that does what no good one does: false tokens, keys that change, answers that never come.

Whoever asks it to sign in is sent back at once as `Provider.subject`; it asks for no password and shows no page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

_PATHS = {
    "authorization_endpoint": "/authorize",
    "token_endpoint": "/token",
    "userinfo_endpoint": "/userinfo",
    "jwks_uri": "/keys",
    "end_session_endpoint": "/logout",
}


class Answer(NamedTuple):
    status: int
    body: dict[str, Any] = {}
    location: str = ""


class Grant(NamedTuple):
    """What a code or a refresh token stands for."""

    subject: str
    nonce: str = ""
    challenge: str = ""
    redirect_uri: str = ""


class Provider:
    """``claims`` replace those of the next tokens, such as ``{"aud": "another"}``; ``clock`` is how many seconds its
    clock is ahead. ``statuses`` (path → status), ``refused`` (subject → status of a token) and ``hanging`` (paths)
    spoil answers; ``asked`` counts requests."""

    client_id, client_secret = "tidesched", "the-secret-of-the-client"

    def __init__(self) -> None:
        self.subject = "ada"
        self.groups: dict[str, list[str]] = {"ada": ["gpu-admins"], "ben": []}
        self.claims: dict[str, Any] = {}
        self.clock, self.lifetime = 0, 600
        self.unknown_key = self.refuses_refresh = False
        self.statuses: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.hanging: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.signed_out: list[dict[str, str]] = []
        self._codes: dict[str, Grant] = {}
        self._refresh: dict[str, Grant] = {}
        self._released = threading.Event()
        self.rotate()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def rotate(self) -> None:
        """From now on another key signs, and it is the only one that is published."""
        self._key, self._key_id = rsa.generate_private_key(public_exponent=65537, key_size=2048), secrets.token_hex(4)

    def answer(self, path: str, asked: dict[str, str], authorization: str) -> Answer:
        if path in self.statuses:
            return Answer(self.statuses[path], {"error": "server_error"})
        if path == "/.well-known/openid-configuration":
            places = {name: self.issuer + place for name, place in _PATHS.items()}
            return Answer(200, {"issuer": self.issuer, "id_token_signing_alg_values_supported": ["RS256"]} | places)
        if path == "/authorize":
            return self._authorize(asked)
        if path == "/token":
            return self._token(asked, authorization)
        if path == "/userinfo":
            subject = authorization.removeprefix("Bearer access-")
            return Answer(200, self._person(subject)) if subject in self.groups else Answer(401)
        if path == "/keys":
            key = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
            return Answer(200, {"keys": [key | {"kid": self._key_id, "use": "sig", "alg": "RS256"}]})
        if path == "/logout":
            self.signed_out.append(asked)
            back = {"state": asked["state"]} if "state" in asked else {}
            return Answer(302, location=f"{asked['post_logout_redirect_uri']}?{urlencode(back)}")
        return Answer(404)

    def _authorize(self, asked: dict[str, str]) -> Answer:
        if asked.get("client_id") != self.client_id or "openid" not in asked.get("scope", "").split():
            return Answer(400, {"error": "invalid_request"})
        code = secrets.token_urlsafe(16)
        challenge = asked.get("code_challenge", "") if asked.get("code_challenge_method") == "S256" else ""
        self._codes[code] = Grant(self.subject, asked.get("nonce", ""), challenge, asked["redirect_uri"])
        query = urlencode({"code": code, "state": asked.get("state", "")})
        return Answer(302, location=f"{asked['redirect_uri']}?{query}")

    def _token(self, asked: dict[str, str], authorization: str) -> Answer:
        given = f"{asked.get('client_id')}:{asked.get('client_secret')}"
        if authorization.startswith("Basic "):
            given = unquote(base64.b64decode(authorization.removeprefix("Basic ")).decode())
        if given != f"{self.client_id}:{self.client_secret}":
            return Answer(401, {"error": "invalid_client"})
        if asked.get("grant_type") == "refresh_token":
            grant = None if self.refuses_refresh else self._refresh.pop(asked.get("refresh_token", ""), None)
        else:
            grant = self._codes.pop(asked.get("code", ""), None)
            digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if grant and (grant.challenge, grant.redirect_uri) != (challenge, asked.get("redirect_uri")):
                grant = None
        if grant and grant.subject in self.refused:
            return Answer(self.refused[grant.subject], {"error": "server_error"})
        if grant is None:
            return Answer(400, {"error": "invalid_grant"})
        refresh = secrets.token_urlsafe(16)
        self._refresh[refresh] = grant
        tokens = {"access_token": f"access-{grant.subject}", "token_type": "Bearer", "expires_in": self.lifetime}
        return Answer(200, tokens | {"id_token": self._id_token(grant), "refresh_token": refresh})

    def _id_token(self, grant: Grant) -> str:
        now = int(time.time()) + self.clock
        told = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + self.lifetime}
        nonce = {"nonce": grant.nonce} if grant.nonce else {}
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048) if self.unknown_key else self._key
        kid = "unknown" if self.unknown_key else self._key_id
        claims = self._person(grant.subject) | told | nonce | self.claims
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": kid})

    def _person(self, subject: str) -> dict[str, Any]:
        names = {"preferred_username": subject, "email": f"{subject}@example.org", "email_verified": True}
        return {"sub": f"id-of-{subject}", "groups": self.groups.get(subject, [])} | names

    def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self too
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def do_GET(self) -> None:
                self._reply({})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._reply(dict(parse_qsl(self.rfile.read(length).decode())))

            def _reply(self, form: dict[str, str]) -> None:
                place = urlsplit(self.path)
                provider.asked[place.path] += 1
                if place.path in provider.hanging:
                    provider._released.wait()
                    self.close_connection = True
                    return
                asked = dict(parse_qsl(place.query)) | form
                answer = provider.answer(place.path, asked, self.headers.get("Authorization", ""))
                content = json.dumps(answer.body).encode()
                self.send_response(answer.status, HTTPStatus(answer.status).phrase)
                if answer.location:
                    self.send_header("Location", answer.location)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        return Handler
