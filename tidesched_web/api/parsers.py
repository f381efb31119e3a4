"""Request bodies: JSON whose texts can be stored, and merge patches."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from tidesched_web.common.plain_json import MOST_DEEP, check_plain

# What Python says of a number that it does not even read.
DIGITS = "integer string conversion"


class PlainJSONParser(JSONParser):
    """JSON without what no database and no answer can hold."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
            check_plain(data)
        except RecursionError:
            raise ParseError(f"Values may stand {MOST_DEEP} deep in each other; these stand deeper.") from None
        except ParseError as error:
            if DIGITS in str(error):
                text = f"A number may have {sys.get_int_max_str_digits()} digits at most, and 64 bits."
                raise ParseError(text) from None
            raise
        return data


class MergePatchParser(PlainJSONParser):
    """A JSON merge patch (RFC 7386): null takes a member away, what is left out stays."""

    media_type = "application/merge-patch+json"
