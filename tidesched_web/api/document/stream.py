from typing import Any

from tidesched_web.accounts.stream_selectors import MAY_LISTEN
from tidesched_web.api.document.automatic import security
from tidesched_web.api.document.refusals import OTHER, reference_to
from tidesched_web.api.v1.serializers.json_shapes import COUNT, TEXT, closed, list_of
from tidesched_web.common import live

PATH = "/api/v1/stream"
_WORDS = """\
Server-sent events. `change` names the object that has changed and what of it: `{topic, id, version, cluster, kind,
name, what}`; fetch the object for its figures. With the id `*` (and without `kind`, `name` and `what`) something of the
topic has changed that the caller does not see or has no scope for, or so much that no object is named: fetch the list
again. `end` says why the stream ends: `lifetime` (after 15 minutes), `signed_out`, `rights_changed`, `too_slow`,
`too_many_streams`, `unavailable` or `unreachable`. A line `: still here` comes where nothing has changed for a while.
Events about clusters out of the caller's sight are left out. About the newest 1000 are kept: a reader that is further
behind fetches its objects again.

**Scope:** """
_EXAMPLE = """\
id: 1766397600000-0
event: change
data: {"topic":"gangs","id":"41","version":"7","cluster":1,"kind":"gang","name":"research/llm-sft","what":"running"}

event: end
data: {"reason":"lifetime"}

"""
_EVENT = closed(
    {
        "id": {**TEXT, "description": "Its place: send it as `Last-Event-ID`."},
        "event": {**TEXT, "enum": ["change", "end"]},
        "data": {**TEXT, "contentMediaType": "application/json"},
        "retry": COUNT,
    },
    *("id", "retry"),
)
_TOPICS = list_of({**TEXT, "enum": [str(topic) for topic in live.TOPICS]}, minItems=1)
_KINDS = "Which kinds of objects; all of them where it is left out."
_LAST = "The newest event that was received: the stream goes on after it; from now on where it is no id of an event."
_AFTER = "The same as `Last-Event-ID`, for clients that cannot send it the first time."


def path_item() -> dict[str, Any]:
    scopes = tuple(str(scope) for scope in MAY_LISTEN)
    stream = {"text/event-stream": {"schema": _EVENT, "example": _EXAMPLE}}
    topics = {"in": "query", "name": "topics", "description": _KINDS, "schema": _TOPICS}
    return {
        "get": {
            "operationId": "stream",
            "summary": "Listen to changes",
            "description": f"{_WORDS}{' or '.join(f'`{scope}`' for scope in scopes)}.",
            "tags": ["stream"],
            "parameters": [
                {**topics, "style": "form", "explode": False},
                {"in": "query", "name": "after", "description": _AFTER, "schema": TEXT},
                {"in": "header", "name": "Last-Event-ID", "description": _LAST, "schema": TEXT},
            ],
            "security": security(scopes),
            "responses": {
                "200": {"description": "The stream, until it ends.", "content": stream},
                **{str(status): reference_to(status) for status in (400, 401, 429, 503)},
                **OTHER,
            },
        }
    }
