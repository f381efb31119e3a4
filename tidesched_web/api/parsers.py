"""Request bodies: JSON whose texts can be stored, and merge patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from tidesched_web.common.plain_json import check_plain


class PlainJSONParser(JSONParser):
    """JSON without what no database and no answer can hold."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
            check_plain(data)
        except RecursionError:
            raise ParseError("JSON parse error - values stand too deep in each other") from None
        return data


class MergePatchParser(PlainJSONParser):
    """A JSON merge patch (RFC 7386): null takes a member away, what is left out stays."""

    media_type = "application/merge-patch+json"
