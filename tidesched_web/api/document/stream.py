"""The operation of the event stream, which is no view of the framework and so describes itself here."""

from __future__ import annotations

from typing import Any

from tidesched_web.accounts.stream_selectors import MAY_LISTEN
from tidesched_web.api.document.automatic import security
from tidesched_web.api.document.refusals import OTHER, reference_to
from tidesched_web.common import live

PATH = "/api/v1/stream"
_EXAMPLE = """\
retry: 2000
: connected

id: 1766397600000-0
event: change
data: {"topic":"gangs","id":"41","version":"7","cluster":1,"kind":"gang","name":"research/llm-sft","what":"running"}

id: 1766397600500-0
event: change
data: {"topic":"queues","id":"*","version":"0","cluster":1}

event: end
data: {"reason":"lifetime"}

"""


_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "Its place: send it as `Last-Event-ID`."},
        "event": {"type": "string", "enum": ["change", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
    "additionalProperties": False,
}


def path_item() -> dict[str, Any]:
    """`GET /api/v1/stream`."""
    scopes = tuple(str(scope) for scope in MAY_LISTEN)
    topics = [str(topic) for topic in live.TOPICS]
    return {
        "get": {
            "operationId": "stream",
            "summary": "Listen to changes",
            "description": (
                "Server-sent events. `change` names the object that has changed and what of it: `{topic, id, version, "
                "cluster, kind, name, what}`; fetch the object for its figures. With the id `*` (and without `kind`, "
                "`name` and `what`) something of the topic has changed that the caller does not see or has no scope "
                "for, or so much that no object is named: fetch the list again. `end` says why the stream ends: "
                "`lifetime` (after 15 minutes), `signed_out`, `rights_changed`, `too_slow`, `too_many_streams`, "
                "`unavailable` or `unreachable`. A line `: still here` comes where nothing has changed for a while. "
                "Events about clusters out of the caller's sight are left out.\n\n"
                "Reconnect with the newest `id` as `Last-Event-ID`. About the newest 1000 events are kept; a reader "
                "that is further behind fetches its objects again.\n\n"
                f"**Scope:** {' or '.join(f'`{scope}`' for scope in scopes)}."
            ),
            "tags": ["stream"],
            "parameters": [
                {
                    "in": "query",
                    "name": "topics",
                    "description": "Which kinds of objects; all of them where it is left out.",
                    "schema": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": topics}},
                    "style": "form",
                    "explode": False,
                },
                {
                    "in": "query",
                    "name": "after",
                    "description": "The same as `Last-Event-ID`, for clients that cannot send it the first time. What "
                    "is no id of an event counts as none: the stream begins with what changes from now on.",
                    "schema": {"type": "string"},
                },
                {
                    "in": "header",
                    "name": "Last-Event-ID",
                    "description": "The newest event that was received: the stream goes on after it.",
                    "schema": {"type": "string"},
                },
            ],
            "security": security(scopes),
            "responses": {
                "200": {
                    "description": "The stream, until it ends.",
                    "content": {"text/event-stream": {"schema": _EVENT, "example": _EXAMPLE}},
                },
                **{str(status): reference_to(status) for status in (400, 401, 429, 503)},
                **OTHER,
            },
        }
    }
