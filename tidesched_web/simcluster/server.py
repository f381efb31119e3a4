import asyncio
import base64
import binascii
import hmac
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidesched_web.simcluster import discovery, operations, selectors
from tidesched_web.simcluster.clock import rfc3339_micro
from tidesched_web.simcluster.errors import (
    ApiError,
    bad_request,
    expired,
    method_not_allowed,
    path_not_found,
    unauthorized,
)
from tidesched_web.simcluster.machine import Machine
from tidesched_web.simcluster.requests import Target, Write, caller_of, is_dry_run, parse_target, whole_number
from tidesched_web.simcluster.resources import EVENTS
from tidesched_web.simcluster.store import Store
from tidesched_web.simcluster.watching import Bell, watch
from tidesched_web.simcluster.write_log import WriteLog
from tidesched_web.simcluster.writing import carry_out

_BATCH = 500


def list_objects(store: Store, target: Target, request: Request) -> Response:
    """A page carries the version of the first one: what changed in between is seen again by a watch from there."""
    query = request.query_params
    test = selectors.parse(query.get("labelSelector", ""), query.get("fieldSelector", ""))
    limit = whole_number(request, "limit", 0)
    after, version = _read_token(store, query["continue"]) if query.get("continue") else (None, store.version)
    items: list[bytes] = []
    more: tuple[str, str] | None = None
    while True:
        rows = store.bodies(target.kind, target.namespace, after=after, limit=_BATCH)
        for namespace, name, body in rows:
            if test is not None and not test(selectors.facts_of(orjson.loads(body))):
                continue
            if limit and len(items) == limit:
                more = after
                break
            items.append(body)
            after = (namespace, name)
        if more is not None or len(rows) < _BATCH:
            break
        after = (rows[-1][0], rows[-1][1])
    metadata: dict[str, str] = {"resourceVersion": str(version)}
    if more is not None:
        metadata["continue"] = _write_token(version, more)
    head = {"apiVersion": target.kind.group_version, "kind": f"{target.kind.kind}List", "metadata": metadata}
    content = orjson.dumps(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
    return Response(content, media_type="application/json")


def _write_token(version: int, after: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *after])).decode()


def _read_token(store: Store, token: str) -> tuple[tuple[str, str], int]:
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError):
        raise bad_request("continue key is not valid") from None
    if version < store.oldest - 1:
        raise expired(version, store.oldest)
    return (namespace, name), version


KEPT_EVENTS = 2_000


def trim_events(store: Store, keep: int = KEPT_EVENTS) -> None:
    rows = store.connection.execute(
        "SELECT namespace, name FROM objects WHERE resource = ? ORDER BY version DESC LIMIT -1 OFFSET ?",
        (EVENTS.qualified, keep),
    ).fetchall()
    for namespace, name in rows:
        store.remove(EVENTS, namespace, name)


log = logging.getLogger(__name__)

TICK_SECONDS = 0.15
# How far ahead of the wall the clock may run on what is stored.
HORIZON_SECONDS = 1.0
_TRIM_TICKS = 200
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class ClusterServer:
    """One simulated cluster behind HTTP. Everything runs on the event loop's thread: each request is whole."""

    def __init__(self, machine: Machine, log_: WriteLog, *, token: str) -> None:
        self.machine, self.write_log = machine, log_
        self._token = token
        self.bell = Bell()
        machine.store.on_commit(self.bell.ring)

    def app(self) -> Starlette:
        routes = [Route("/{path:path}", self._answer, methods=_METHODS)]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        ticking = asyncio.create_task(self._tick())
        ticking.add_done_callback(_end_with)
        yield
        ticking.remove_done_callback(_end_with)
        ticking.cancel()
        self.machine.close()

    async def _tick(self) -> None:
        ticks = 0
        while True:
            self.machine.keep_time(HORIZON_SECONDS)
            ticks += 1
            if ticks % _TRIM_TICKS == 0:
                with self.machine.store.transaction():
                    self.write_log.trim()
                    trim_events(self.machine.store)
            await asyncio.sleep(TICK_SECONDS)

    async def _answer(self, request: Request) -> Response:
        try:
            self._authenticate(request)
            return await self._dispatch(request)
        except ApiError as error:
            return _json(error.to_status(), error.code)
        except Exception as error:  # a client gets it in the form that it can read; the trace is in the log
            log.exception("%s %s failed", request.method, request.url.path)
            return _json(ApiError(500, "InternalError", f"Internal error occurred: {error}").to_status(), 500)

    def _authenticate(self, request: Request) -> None:
        if request.url.path == "/healthz":
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token.encode()):
            raise unauthorized()

    async def _dispatch(self, request: Request) -> Response:
        path = request.url.path
        if request.method == "GET" and (answer := self._fixed(request, path)) is not None:
            return answer
        target = parse_target(path)
        if request.method == "GET":
            if target.name:
                if target.subresource not in ("", "status"):
                    raise method_not_allowed()
                return _json(operations.read(self.machine.store, target))
            if request.query_params.get("watch", "") in ("1", "true"):
                return watch(self.machine.store, self.bell, target, request)
            return list_objects(self.machine.store, target, request)
        body = await request.body()
        named = bool(target.name)
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]
        if target.subresource in ("binding", "eviction"):
            if verb != "create":
                raise method_not_allowed()
            verb = "bind" if target.subresource == "binding" else "evict"
        elif named == (verb == "create"):
            raise method_not_allowed()
        elif verb == "patch" and "apply-patch" in request.headers.get("content-type", ""):
            verb = "apply"
        write = Write(
            target=target,
            verb=verb,
            caller=caller_of(request),
            body=body,
            content_type=request.headers.get("content-type", ""),
            dry_run=is_dry_run(request.query_params.get("dryRun")),
            force=request.query_params.get("force", "") in ("1", "true"),
            query=dict(request.query_params),
        )
        outcome = carry_out(self.machine, self.write_log, write)
        return _json(outcome.body, outcome.code)

    def _fixed(self, request: Request, path: str) -> Response | None:
        parts = [part for part in path.split("/") if part]
        match parts:
            case ["healthz"]:
                return Response("ok", media_type="text/plain")
            case ["version"]:
                return _json(discovery.version())
            case ["api"]:
                return _json(discovery.api_versions())
            case ["apis"]:
                return _json(discovery.group_list())
            case ["api", version]:
                return _json(discovery.resource_list("", version))
            case ["apis", group]:
                return _json(discovery.group(group))
            case ["apis", group, version]:
                return _json(discovery.resource_list(group, version))
            case ["tidesched", "clock"]:
                return _json({"now": rfc3339_micro(self.machine.clock.now()), "rate": self.machine.rate})
            case ["tidesched", "writes"]:
                return self._writes(request)
            case ["tidesched", *_] | []:
                raise path_not_found()
        return None

    def _writes(self, request: Request) -> Response:
        after, limit = whole_number(request, "after", 0), whole_number(request, "limit", 500)
        if not 1 <= limit <= 5000:
            raise bad_request("limit: from 1 to 5000")
        rows = self.write_log.page(after=after, limit=limit)
        return _json({"writes": rows, "last": rows[-1]["seq"] if rows else after})


def _end_with(ticking: asyncio.Task[None]) -> None:
    """A cluster whose time stands still is worse than one that is started again."""
    log.critical("the clock stopped", exc_info=ticking.exception())
    os._exit(70)


def _json(body: object, code: int = 200) -> Response:
    return Response(orjson.dumps(body), code, media_type="application/json")
