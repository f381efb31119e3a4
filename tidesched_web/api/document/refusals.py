from typing import Any

from tidesched_web.api.problem_json import CONTENT_TYPE
from tidesched_web.api.v1.serializers.json_shapes import COUNT, TEXT, extended, further_facts, list_of, ref
from tidesched_web.common.errors import STATUS_OF

_POINTER = {**TEXT, "description": "JSON pointer into the request, or `/` and a parameter."}
_AT_FAULT = extended({"pointer": _POINTER, "code": TEXT, "detail": TEXT}, "pointer", "code", "detail")
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "What went wrong (RFC 9457). `code` is stable; further members hold figures.",
    "required": ["type", "title", "status", "code", "detail", "instance"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {**TEXT, "description": "The phrase of the HTTP status."},
        "status": COUNT,
        "code": {**TEXT, "enum": sorted(STATUS_OF), "description": "Stable; programs decide by it."},
        "detail": {**TEXT, "description": "A sentence for a person."},
        "instance": {**TEXT, "description": "The path of the request."},
        "request_id": {**TEXT, "description": "Also in `X-Request-ID`, in the log and in the audit log."},
        "errors": list_of(_AT_FAULT),
        "more_errors": {**COUNT, "description": "Errors beyond the 200 that `errors` lists."},
    },
    "additionalProperties": further_facts(4),
}

# status → name of the component, what it means
_REFUSALS = {
    400: ("Invalid", "The form is wrong, or what is named is not there, or a rule is against it: `code` tells which."),
    401: ("NotSignedIn", "Neither a live token nor a session."),
    403: ("NotAllowed", "A scope of the token (`required_scopes`), a role, or the CSRF token of a session is missing."),
    404: ("NotFound", "There is no such object, or it is out of the caller's sight."),
    406: ("NotAcceptable", "`Accept` allows no form that this answer has."),
    409: ("Conflict", "The state, a taken name, a dependent, a `limit` or a request under the same key is against it."),
    412: ("Stale", "`If-Match` is not the present `etag`; of a quota change `edited_since` names what was edited."),
    413: ("TooLarge", "The body is larger than this server takes."),
    415: ("NotJson", "The body is not `application/json` (of a PATCH also `application/merge-patch+json`)."),
    422: ("NotCarriedOut", "A quota rule is against it (`quota_breach`), or the key was used with another body."),
    428: ("VersionNeeded", "`If-Match` is needed here."),
    429: ("TooManyRequests", "Wait as long as `Retry-After` says."),
    503: ("Unavailable", "The database or Redis does not answer, or no worker has finished in time (see `test`)."),
}  # fmt: skip
_WAITS = {"headers": {"Retry-After": {"description": "Seconds to wait.", "schema": COUNT}}}
OTHER = {"default": {"$ref": "#/components/responses/Problem"}}


def refusals_of(operation: dict[str, Any], path: str, method: str) -> dict[str, Any]:
    headers = {one["name"]: one.get("description", "") for one in operation.get("parameters", ())}
    signed_in, sends, writes = {} not in operation["security"], "requestBody" in operation, method != "get"
    happens = {
        **dict.fromkeys((400, 406, 429, 503), True),
        **dict.fromkeys((401, 403), signed_in),
        404: "{" in path or operation["operationId"] == "usage_list",
        **dict.fromkeys((413, 415), sends),
        **dict.fromkeys((409, 422), writes),
        412: "If-Match" in headers,
        428: "428" in headers.get("If-Match", ""),
    }
    return {str(status): reference_to(status) for status, does in sorted(happens.items()) if does} | OTHER


def reference_to(status: int) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{_REFUSALS[status][0]}"}


def components() -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": ref("Problem")}}
    found = {
        name: {"description": text, "content": content, **(_WAITS if status in (429, 503) else {})}
        for status, (name, text) in _REFUSALS.items()
    }
    return {**found, "Problem": {"description": "Any other refusal.", "content": content}}
