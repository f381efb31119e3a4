import functools
import re
from collections.abc import Callable
from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from tidesched_web.api.idempotency import HEADER, KEY, idempotent, key_of
from tidesched_web.common.errors import DomainError

DRY_RUN = "dry_run"
_TAG = re.compile(r'(?:W/)?"?([0-9]{1,18})"?')
# What clients and proxies make of it: several, also of others, and the coding that Apache adds.
_TAGS = re.compile(r'\s*(?:(?:W/)?"[^"]*"|(?:W/)?"?[0-9]{1,18}"?)(?:\s*,\s*(?:W/)?"[^"]*")*\s*')
_ONE_OF_OURS = re.compile(r'(?:^(?:W/)?|")([0-9]{1,18})(?:[-;](?:gzip|br|zstd|deflate))?(?:"|$)')

IDEMPOTENCY = OpenApiParameter(
    HEADER,
    {"type": "string", "pattern": KEY},
    OpenApiParameter.HEADER,
    description="Send again without doing it twice.",
)


def _if_match(otherwise: str, example: str = '"1"', *, required: bool = False) -> OpenApiParameter:
    form = {"type": "string", "pattern": rf"^(\*|{_TAG.pattern})$", "example": example}
    text = f"The ETag that you looked at{otherwise}"
    return OpenApiParameter("If-Match", form, OpenApiParameter.HEADER, required=required, description=text)


IF_MATCH = _if_match("; a stale one is answered 412.")
# What a dry run may go without is optional in the document, which cannot say that one parameter asks for another.
IF_MATCH_NEEDED = _if_match(": without one 428, but for a dry run; with a stale one 412.")
IF_MATCH_OF_QUOTA = _if_match("; stale: 412. With `quota` it is needed: without one 428, but for a dry run.")
IF_MATCH_OF_TREE = _if_match(
    ", or `*` where the file is right whatever the tree says: without one 428, but for a dry run; stale: 412.",
    example="*",
)
IF_MATCH_ALWAYS = _if_match(": without one 428, with a stale one 412.", required=True)
REASON_IN_ADDRESS = OpenApiParameter("reason", str, description="Why, where no body is sent.")
DRY_RUN_PARAMETER = OpenApiParameter(
    DRY_RUN, bool, description="Check and answer as if it were done, with `dry_run: true`, and do nothing."
)


def expected_version(request: Request, *, needed: bool = False) -> int | None:
    text = request.headers.get("If-Match")
    if text is None and needed:
        raise DomainError("precondition_required", "If-Match is needed here: send the ETag of what you looked at.")
    if text is None or text.strip() == "*":
        return None
    if _TAGS.fullmatch(text) is None:
        raise DomainError("invalid", f'If-Match: {text[:80]} is no ETag; one of this API looks like "7".')
    # Versions grow, so that of several the highest is the one that may be there still; others' tags are of no version.
    return max((int(version) for version in _ONE_OF_OURS.findall(text.strip())), default=-1)


def is_dry_run(request: Request) -> bool:
    wanted = true_or_false(request, DRY_RUN, default=False)
    if wanted:
        key_of(request)  # it keeps nothing, and still says what is wrong with the key
    return wanted


def true_or_false(request: Request, name: str, *, default: bool) -> bool:
    text = request.query_params.get(name, str(default)).lower()
    if text not in ("true", "false", "1", "0"):
        raise DomainError.for_field(f"/{name}", f"{text[:80]!r}: true or false is meant.")
    return text in ("true", "1")


def write(method: Callable[..., Response]) -> Callable[..., Response]:
    """With ``dry_run`` all that it wrote is taken back, tasks and events with it."""
    kept = idempotent(method)

    @functools.wraps(method)
    def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        if not is_dry_run(request):
            run = kept if request.method == "POST" else method
            return run(view, request, *args, **kwargs)
        with transaction.atomic():
            response = method(view, request, *args, **kwargs)
            transaction.set_rollback(True)
        response.data = {**(response.data or {}), DRY_RUN: True}
        response.status_code = 200
        response.headers.pop("Location", None)
        return response

    return answer
