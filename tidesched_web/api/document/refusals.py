"""The refusals of an operation, worked out from what it takes and who may call it; each is described once."""

from __future__ import annotations

from typing import Any

from tidesched_web.api.problem_json import CONTENT_TYPE
from tidesched_web.common.errors import STATUS_OF

_REFERENCE = {"$ref": "#/components/schemas/Problem"}
_FORM_OR_RULE = {"oneOf": [{"$ref": f"#/components/schemas/{name}Problem"} for name in ("Form", "Rule")]}

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "What went wrong (RFC 9457). `code` is stable; further members hold figures.",
    "required": ["type", "title", "status", "code", "detail", "instance"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string", "description": "The phrase of the HTTP status."},
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": sorted(STATUS_OF), "description": "Stable; programs decide by it."},
        "detail": {"type": "string", "description": "A sentence for a person."},
        "instance": {"type": "string", "description": "The path of the request."},
        "request_id": {"type": "string", "description": "Also in `X-Request-ID`, in the log and in the audit log."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "detail"],
                "properties": {
                    "pointer": {
                        "type": "string",
                        "description": "JSON pointer into the request, or `/` and a parameter.",
                    },
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
                "additionalProperties": {"$ref": "#/components/schemas/Fact"},
            },
        },
        "more_errors": {"type": "integer", "description": "Errors beyond the 200 that `errors` lists."},
    },
    "additionalProperties": {
        "anyOf": [
            {"$ref": "#/components/schemas/Fact"},
            {"$ref": "#/components/schemas/Facts4"},
            {"type": "array", "items": {"$ref": "#/components/schemas/Facts4"}},
        ]
    },
}

# The status 400 for data of the right form: what it names is not there, or a rule of the product does not allow it.
RULES = (
    "against_rules", "invalid_cursor", "invalid_policy", "invalid_tree", "misleading_name", "reason_required",
    "too_many_points",
    "unknown_card", "unknown_field", "unknown_object", "unknown_scope", "unknown_tenant",
    "unknown_user", "weak_password",
)  # fmt: skip
# The status 400 for data whose form is wrong: the document says which form it has.
FORM = ("invalid", "malformed_body", "unknown_parameter")


def _with_codes(description: str, codes: tuple[str, ...]) -> dict[str, Any]:
    properties = PROBLEM["properties"] | {"code": {"type": "string", "enum": list(codes)}}
    return {**PROBLEM, "description": description, "properties": properties}


SCHEMAS = {
    "Problem": PROBLEM,
    "FormProblem": _with_codes("The form of a parameter or of the body is wrong.", FORM),
    "RuleProblem": _with_codes(
        "The form is right; what the request names is not there or out of sight (`unknown_…`), or a rule that `detail` "
        "states does not allow it.",
        RULES,
    ),
}

# status → (name of the component, what it means, code and sentence of its example)
_REFUSALS = {
    400: ("Invalid", ("The form of a parameter or of the body is wrong (`FormProblem`), or it names what is not there "
          "or goes against a rule (`RuleProblem`); `code` tells which, `errors` names each place."),
          "unknown_parameter", "Unknown parameter 'slag'. Known here: count, cursor, limit, name, slug."),
    401: ("NotSignedIn", "Neither a live token nor a session.", "invalid_token",
          "This token is unknown, expired or revoked."),
    403: ("NotAllowed", ("The token lacks the scope (`missing_scope`, with `required_scopes`), the role does not allow "
          "it, or a session's write comes without its CSRF token."), "missing_scope",
          "This token lacks the scope quota:write."),
    404: ("NotFound", "There is no such object, or it is out of the caller's sight.", "not_found",
          "There is no such object."),
    406: ("NotAcceptable", "`Accept` allows no form that this answer has.", "not_acceptable",
          "Could not satisfy the request Accept header."),
    408: ("TooSlow", "The body came more slowly than this server waits; `limit` is in seconds.", "body_too_slow",
          "The body of a request has to come within 30 seconds."),
    409: ("Conflict", ("The state does not allow it, the name is taken, something depends on it, a request under "
          "the same `Idempotency-Key` is under way, or the account keeps as many of these as it may "
          "(`too_many_kept`, with `limit`)."), "in_use", "2 queues depend on acme."),
    412: ("Stale", "`If-Match` is not the present version; `etag`, where it is given, is.", "stale",
          "It was changed meanwhile: this is version 8."),
    413: ("TooLarge", "The body is larger than this server takes.", "body_too_large", "The body is too large."),
    415: ("NotJson", ("The body's content type is not `application/json` (a PATCH may be "
          "`application/merge-patch+json`)."), "unsupported_media_type",
          "Unsupported media type \"text/plain\" in request."),
    422: ("NotCarriedOut", ("The quota rules do not allow it (`quota_breach`), or the `Idempotency-Key` was used with "
          "another body."), "idempotency_key_reused", "This Idempotency-Key was used with another body."),
    428: ("VersionNeeded", "`If-Match` is needed here.", "precondition_required",
          "If-Match is needed here: send the ETag of what you looked at."),
    429: ("TooManyRequests", "Wait as long as `Retry-After` says.", "throttled",
          "One caller may make 3000 requests a minute; wait as long as Retry-After says."),
    503: ("Unavailable", ("The database or Redis does not answer, or no worker has finished in time what the answer "
          "needs (`test` says how far it is); try again after `Retry-After`."), "unavailable",
          "The database or Redis does not answer at the moment; try again."),
}  # fmt: skip
_WAITS = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}


def refusals_of(operation: dict[str, Any], path: str, method: str) -> list[int]:
    """The statuses of its refusals."""
    headers = {one["name"]: one.get("description", "") for one in operation.get("parameters", ())}
    signed_in = {} not in operation["security"]
    happens = {
        400: True,
        401: signed_in,
        403: signed_in,
        404: "{" in path or operation["operationId"] == "usage_list",
        406: True,
        408: "requestBody" in operation,
        409: method != "get",
        412: "If-Match" in headers,
        413: "requestBody" in operation,
        415: "requestBody" in operation,
        422: method != "get",
        428: "428" in headers.get("If-Match", ""),
        429: True,
        503: True,
    }
    return [status for status, does in happens.items() if does]


def reference_to(status: int) -> dict[str, str]:
    """How an operation names the refusal."""
    return {"$ref": f"#/components/responses/{_REFUSALS[status][0]}"}


def components() -> dict[str, Any]:
    """The refusals by name."""
    found: dict[str, Any] = {}
    for status, (name, text, code, detail) in _REFUSALS.items():
        schema = _FORM_OR_RULE if status == 400 else _REFERENCE
        content = {CONTENT_TYPE: {"schema": schema, "example": _example(status, code, detail)}}
        found[name] = {"description": text, "content": content}
        if status in (429, 503):
            found[name]["headers"] = _WAITS
    text = "Any other refusal: the same document with another `status` and `code`."
    found["Problem"] = {"description": text, "content": {CONTENT_TYPE: {"schema": _REFERENCE}}}
    return found


def _example(status: int, code: str, detail: str) -> dict[str, Any]:
    said = {
        "type": f"https://tidesched.io/problems/{code.replace('_', '-')}",
        "title": STATUS_OF[code].phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "instance": "/api/v1/tenants/",
        "request_id": "4f0c2b7e9a13d5680c1e7f42",
    }
    if status == 400:
        pointed = {"pointer": "/slag", "code": code, "detail": "Known: count, cursor, limit, name, slug."}
        return {**said, "errors": [pointed]}
    if code == "missing_scope":
        return {**said, "required_scopes": ["quota:write"], "token_scopes": ["quota:read"]}
    return said
