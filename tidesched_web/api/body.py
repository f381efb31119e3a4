from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.fields import BooleanField, CharField, ChoiceField, DateTimeField, Field, FloatField, IntegerField
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from tidesched_web.api.problem_json import as_domain_error
from tidesched_web.common.errors import MOST_ERRORS, DomainError
from tidesched_web.common.hints import MOST_UNKNOWN, Shown, cut
from tidesched_web.common.plain_json import check_plain

# Entries of a list that sets no bound of its own.
MOST_ENTRIES = 1000


def _of_wrong_type(field: Field[Any, Any, Any, Any], value: Any, pointer: str) -> Iterator[dict[str, str]]:
    if value is None:
        return
    if isinstance(field, Serializer):
        if not isinstance(value, dict):
            return
        for name in sorted(value.keys() - field.fields.keys()):
            yield {"pointer": f"{pointer}/{cut(name)}", "code": "invalid", "detail": f"Unknown member {cut(name)!r}."}
        yield from _wrong_members(field, value, pointer)
        return
    child = getattr(field, "child", None)
    if child is not None:
        # Each entry is looked at by the framework before it counts them.
        most = getattr(field, "max_length", None) or MOST_ENTRIES
        if isinstance(value, list) and len(value) > most:
            yield {"pointer": pointer, "code": "invalid", "detail": f"At most {most} entries; here are {len(value)}."}
            return
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _of_wrong_type(child, item, f"{pointer}/{index}")
        return
    for kind, said, fits in _PLAIN:
        if isinstance(field, kind):
            if not fits(value):
                yield {"pointer": pointer, "code": "invalid", "detail": f"{Shown(value)!r}: {said} is meant."}
            return


def _wrong_members(form: Serializer[Any], value: dict[str, Any], pointer: str) -> Iterator[dict[str, str]]:
    for name, member in form.fields.items():
        if name in value:
            yield from _of_wrong_type(member, value[name], f"{pointer}/{name}")


_PLAIN: tuple[tuple[type[Field[Any, Any, Any, Any]], str, Callable[[Any], bool]], ...] = (
    (BooleanField, "true or false", lambda value: isinstance(value, bool)),
    (IntegerField, "a whole number", lambda value: type(value) in (int, float) and value == int(value)),
    (FloatField, "a number", lambda value: type(value) in (int, float)),
    (CharField, "a text", lambda value: isinstance(value, str)),
    (DateTimeField, "a time", lambda value: isinstance(value, str)),
    (ChoiceField, "a text", lambda value: isinstance(value, str)),
)


def checked_body(serializer: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise DomainError("malformed_body", "The body has to be a JSON object.")
    form = serializer(data=request.data)
    wrong = list(islice(chain(_unknown(form, request.data), _wrong_members(form, request.data, "")), MOST_ERRORS))
    if wrong and len(request.data) <= MOST_UNKNOWN + len(form.fields):
        wrong += islice(_of_the_others(serializer, request.data, wrong), MOST_ERRORS - len(wrong))
    if wrong:
        raise DomainError("invalid", f"{wrong[0]['pointer']}: {wrong[0]['detail']}", {"errors": wrong})
    form.is_valid(raise_exception=True)
    return dict(form.validated_data)


def _unknown(form: Serializer[Any], data: dict[str, Any]) -> Iterator[dict[str, str]]:
    unknown = data.keys() - form.fields.keys()
    if unknown:
        name = cut(min(unknown))
        more = f" {len(unknown) - 1} more are not known." if len(unknown) > 1 else ""
        said = f"Unknown member {name!r}. Known: {', '.join(form.fields)}.{more}"
        yield {"pointer": f"/{name}", "code": "invalid", "detail": said}


def _of_the_others(
    serializer: type[Serializer[Any]], data: dict[str, Any], wrong: list[dict[str, str]]
) -> Iterator[dict[str, str]]:
    named = {_member(error) for error in wrong}
    rest = {name: value for name, value in data.items() if name in serializer().fields.keys() - named}
    try:
        serializer(data=rest).is_valid(raise_exception=True)
    except ValidationError as error:
        said = as_domain_error(error)
        yield from (found for found in (said.extra["errors"] if said else ()) if _member(found) not in named)


def _member(error: dict[str, str]) -> str:
    return error["pointer"].split("/")[1] if "/" in error["pointer"] else ""


def reason_in_address(request: Request) -> str:
    """The reason of a deletion where a client sends no body; it is looked at even where the body has another."""
    reason = str(request.query_params.get("reason", ""))
    check_plain(reason, "/reason")
    return reason
