"""Lists, in pages where a limit is given."""

from __future__ import annotations

import base64
import binascii

import orjson
from starlette.requests import Request
from starlette.responses import Response

from tidesched_web.simcluster import selectors
from tidesched_web.simcluster.errors import bad_request, expired
from tidesched_web.simcluster.requests import Target, whole_number
from tidesched_web.simcluster.store import Store

_BATCH = 500


def list_objects(store: Store, target: Target, request: Request) -> Response:
    """``{kind}List`` with the resource version to watch from.

    A page continues after the last name of the page before and carries the version of the first page: what changed
    in between is seen again by a watch from there. (Kubernetes shows all pages as of one moment.)
    """
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
