"""Raw JSON: the model classes of the ``kubernetes`` package cost more time than a session itself."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlencode, urlsplit

import orjson
import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.rest import should_bypass_proxies
from urllib3 import exceptions

from tidesched_web.clusters.kubernetes import plain_text
from tidesched_web.clusters.kubernetes.answers import READ, WHOLE_LIST, WRITE, BeyondBound, Bound, body_of, message_of
from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection
from tidesched_web.clusters.kubernetes.guarded_pool import HeadTooSlow, guard
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind, from_status

if TYPE_CHECKING:
    from tidesched_web.clusters.models import Cluster

TIMEOUT_SECONDS = 5.0
FIELD_MANAGER = "tidesched"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
# Merges lists by their keys, so a condition is written without the others; for built-in kinds only.
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_POOL_SIZE = 32
_DISCOVERY_SECONDS = 300.0
PROXY = "HTTPS_PROXY"

Json = dict[str, Any]


# How urllib3 names the pool or connection that failed, and seconds with all their digits.
_WHO_FAILED = re.compile(r"\b\w+\(host='[^']*', port=\d+\): ")
_SECONDS = re.compile(r"(?<=timeout=)\d+\.\d+")
_NOT_SENT = exceptions.NewConnectionError, exceptions.ConnectTimeoutError, exceptions.SSLError, exceptions.ProxyError


def in_plain_words(error: exceptions.HTTPError) -> str:
    said = error.args[-1] if error.args and isinstance(error.args[-1], Exception) else error
    through = f"the proxy of {PROXY}: " if isinstance(error, exceptions.ProxyError) else ""
    return through + _SECONDS.sub(lambda found: f"{float(found[0]):.1f}", _WHO_FAILED.sub("", str(said)))


class Unreachable(Exception):
    """The server did not answer. ``maybe_done``: the request may have arrived all the same."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class ApiFailure(Exception):
    """The server answered a read with an error, and may ask for ``retry_after`` seconds of rest (0 = it does not)."""

    def __init__(self, code: int, body: Json, *, retry_after: float = 0.0) -> None:
        super().__init__(f"{code} {message_of(body, 'reason')}: {message_of(body)}")
        self.code, self.body, self.retry_after = code, body, retry_after


class KubernetesClient:
    """One API server. Threads may share it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._files: list[Path] = []
        self._api = ApiClient(self._configure(connection))
        self._pool: urllib3.PoolManager = self._api.rest_client.pool_manager
        guard(self._pool)
        headers: dict[str, str] = {"User-Agent": FIELD_MANAGER, "Accept": "application/json"}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], "", "GET", None)
        self._headers = headers
        self._resources: dict[str, tuple[float, frozenset[str]]] = {}
        # Asking the pool of pools each time costs as much as writing the request.
        proxied = isinstance(self._pool, urllib3.ProxyManager)
        self._direct = None if proxied else self._pool.connection_from_url(connection.url)
        self._prefix = connection.url if proxied else urlsplit(connection.url).path.rstrip("/")

    @classmethod
    def for_cluster(cls, cluster: Cluster) -> KubernetesClient:
        from tidesched_web.clusters.credentials import connection_of  # the rest of this module needs no database

        return cls(connection_of(cluster))

    def _configure(self, connection: Connection) -> Configuration:
        configuration = Configuration(host=connection.url, connection_pool_maxsize=_POOL_SIZE)
        configuration.keep_alive = True  # finds out about a peer that vanished under a silent watch
        configuration.verify_ssl = True
        if connection.is_loopback or should_bypass_proxies(connection.url, configuration.no_proxy or ""):
            configuration.proxy = None
        if configuration.proxy:
            _give_credentials(configuration)
        if connection.token:
            configuration.api_key = {"authorization": connection.token}
            configuration.api_key_prefix = {"authorization": "Bearer"}
        if connection.ca_certificate:
            configuration.ca_cert_data = connection.ca_certificate
        if connection.tls_server_name:
            configuration.tls_server_name = connection.tls_server_name
        if connection.client_certificate:
            configuration.cert_file = self._file(connection.client_certificate)
            configuration.key_file = self._file(connection.client_key)
        return configuration

    def _file(self, text: str) -> str:
        """A private file, since Python's TLS reads client certificates from files only; gone with :meth:`close`."""
        handle, name = tempfile.mkstemp(prefix="tidesched-")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        self._files.append(Path(name))
        return name

    def close(self) -> None:
        self._api.close()
        for file in self._files:
            file.unlink(missing_ok=True)
        self._files.clear()

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, whole: bool = False) -> Json:
        """``whole``: a long list in one piece, for which there is more room and time."""
        code, body, rest = self._request("GET", path, query=query, bound=WHOLE_LIST if whole else READ)
        if code != 200:
            raise ApiFailure(code, body, retry_after=rest)
        return body

    def serves(self, group_version: str, resource: str) -> bool:
        """Asked again after some minutes: kinds may come later. A group that is not there is no failure."""
        asked, resources = self._resources.get(group_version, (float("-inf"), frozenset()))
        if time.monotonic() - asked > _DISCOVERY_SECONDS:
            prefix = "/apis" if "/" in group_version else "/api"
            try:
                listed = self.get(f"{prefix}/{group_version}")["resources"]
            except ApiFailure as error:
                if error.code != 404:
                    raise
                listed = []
            resources = frozenset(entry["name"] for entry in listed)
            self._resources[group_version] = (time.monotonic(), resources)
        return resource in resources

    @contextlib.contextmanager
    def stream(self, path: str, query: Mapping[str, Any], *, read_timeout: float) -> Iterator[urllib3.HTTPResponse]:
        timeout = urllib3.Timeout(connect=TIMEOUT_SECONDS, read=read_timeout)
        response = self._send("GET", path, query, None, {}, timeout)
        try:
            if response.status != 200:
                raise ApiFailure(response.status, _decode(self._read(response, READ)), retry_after=_rest(response))
            yield response
        finally:
            # What was not read is of no use: the connection is closed, not put back.
            response.close()

    # -- writing -----------------------------------------------------------------------------------------------

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Outcome:
        try:
            code, answer, rest = self._request(
                method, path, body, query=query, content_type=content_type, headers=headers
            )
        except Unreachable as error:
            away = method == "GET" or not (error.maybe_done and self._answers())
            return Outcome(OutcomeKind.UNREACHABLE, "Unreachable", str(error), maybe_done=error.maybe_done, away=away)
        return from_status(code, answer, retry_after=rest)

    def _answers(self) -> bool:
        """Whether the server answers at all where one request got none: a webhook may hang, or all of it."""
        try:
            self.get("/version")
        except ApiFailure:
            return True
        except Unreachable:
            return False
        return True

    # -- transport ---------------------------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        bound: Bound | None = None,
    ) -> tuple[int, Json, float]:
        sent = dict(headers or {})
        data = None
        if body is not None:
            data, sent["Content-Type"] = orjson.dumps(body), content_type
        timeout = urllib3.Timeout(total=TIMEOUT_SECONDS)
        response = self._send(method, path, query, data, sent, timeout)
        try:
            content = self._read(response, bound or WRITE)
        finally:
            response.release_conn()
        return response.status, _decode(content), _rest(response)

    def _read(self, response: urllib3.HTTPResponse, bound: Bound) -> bytes:
        try:
            return body_of(response, bound)
        except BeyondBound as error:
            raise Unreachable(f"{self.connection.url}: {error}", maybe_done=True) from error
        except exceptions.HTTPError as error:
            raise Unreachable(f"{self.connection.url}: {in_plain_words(error)}", maybe_done=True) from error

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        timeout: urllib3.Timeout,
    ) -> urllib3.HTTPResponse:
        url = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        sent = {**self._headers, **self._fresh_token(), **headers}
        try:
            try:
                response = self._send_once(method, url, data, sent, timeout)
            except exceptions.ProtocolError:
                if method != "GET":
                    raise
                # A connection that was kept open may be closed by the server just as it is used again.
                response = self._send_once(method, url, data, sent, timeout)
        except _NOT_SENT as error:
            raise Unreachable(f"{self.connection.url}: {in_plain_words(error)}", maybe_done=False) from error
        except exceptions.HTTPError as error:
            late = error.__cause__ if isinstance(error.__cause__, HeadTooSlow) else None
            said = str(late) if late else in_plain_words(error)
            raise Unreachable(f"{self.connection.url}: {said}", maybe_done=True) from late or error
        if response.status == 401 and self.connection.token_file is not None:
            self.connection.token_file.forget()
        return response

    def _send_once(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str], timeout: urllib3.Timeout
    ) -> urllib3.HTTPResponse:
        # No retries and no redirects: a write is sent once, and a token goes to no other server.
        return (self._direct or self._pool).urlopen(  # type: ignore[return-value]  # urllib3 names the base class
            method,
            url,
            body=data,
            headers=headers,
            timeout=timeout,
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def _fresh_token(self) -> dict[str, str]:
        """The token of this process's own pod, which is replaced every hour."""
        if self.connection.token_file is None:
            return {}
        try:
            return {"authorization": f"Bearer {self.connection.token_file.token()}"}
        except BadConnection as error:
            raise Unreachable(str(error), maybe_done=False) from None


def _give_credentials(configuration: Configuration) -> None:
    """User and password of the environment's proxy go into its header alone: what names the proxy has none."""
    given = str(configuration.proxy).strip()
    try:
        proxy = urllib3.util.parse_url(given if "://" in given else f"http://{given}")
    except exceptions.LocationParseError:
        proxy = urllib3.util.Url()
    tail = (proxy.path or "/").removeprefix("/") or proxy.query or proxy.fragment
    if proxy.scheme not in ("http", "https") or not proxy.host or tail:
        raise BadConnection(PROXY, "is not the address of a proxy, such as http://proxy.example:3128")
    if proxy.auth:
        user, _, password = proxy.auth.partition(":")
        plain = unquote_to_bytes(f"{user}:{password}").decode("latin-1")
        configuration.proxy_headers = urllib3.make_headers(proxy_basic_auth=plain)
    configuration.proxy = proxy._replace(auth=None).url
    if proxy.scheme == "https":  # it is trusted as the web is, not by the cluster's authority
        configuration.proxy_ssl_context = ssl.create_default_context()


def _rest(response: urllib3.BaseHTTPResponse) -> float:
    """``Retry-After`` in seconds; Kubernetes never sends a date."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0.0


def _decode(content: bytes) -> Json:
    try:
        body = plain_text.loads(content)
    except orjson.JSONDecodeError:
        return {"message": content[:500].decode("utf-8", "replace")}
    return body if isinstance(body, dict) else {"message": str(body)[:500]}
