from collections.abc import Mapping
from typing import Any

import orjson
from django.utils.functional import Promise
from rest_framework.renderers import BaseRenderer


def _other(value: Any) -> Any:
    if isinstance(value, Promise):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class JsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data, default=_other, option=orjson.OPT_NON_STR_KEYS)
