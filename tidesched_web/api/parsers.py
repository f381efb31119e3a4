"""Request bodies beside plain JSON."""

from __future__ import annotations

from rest_framework.parsers import JSONParser


class MergePatchParser(JSONParser):
    """A JSON merge patch (RFC 7386): null takes a member away, what is left out stays."""

    media_type = "application/merge-patch+json"
