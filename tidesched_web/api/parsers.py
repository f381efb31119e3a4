import codecs
import sys
from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser, get_encoding  # type: ignore[attr-defined]  # newer than its stubs
from rest_framework.utils import json

from tidesched_web.common.plain_json import MOST_DEEP, check_plain

# What Python says of a number that it does not even read.
DIGITS = "integer string conversion"


class PlainJSONParser(JSONParser):
    """JSON without what no database and no answer can hold, and without a member that is there twice."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            read = codecs.getreader(get_encoding(parser_context or {}))(stream).read()
            data = json.loads(read, parse_constant=json.strict_constant, object_pairs_hook=_each_once)
        except RecursionError:
            raise ParseError(f"Values may stand {MOST_DEEP} deep in each other; these stand deeper.") from None
        except ValueError as error:
            if DIGITS in str(error):
                text = f"A number may have {sys.get_int_max_str_digits()} digits at most, and 64 bits."
                raise ParseError(text) from None
            raise ParseError(f"JSON parse error - {error}") from None
        if not isinstance(data, dict | list):
            raise ParseError("The body has to be a JSON object.")
        check_plain(data)
        return data


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """One reader would take the first of two equal names, another one the last. O(members)."""
    found = dict(members)
    if len(found) < len(members):
        seen: set[str] = set()
        for name, _value in members:
            if name in seen:
                raise ParseError(f"The member {name[:100]!r} is there more than once in one object.")
            seen.add(name)
    return found


class MergePatchParser(PlainJSONParser):
    """A JSON merge patch (RFC 7386): null takes a member away, what is left out stays."""

    media_type = "application/merge-patch+json"
