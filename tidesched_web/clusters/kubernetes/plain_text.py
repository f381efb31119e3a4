"""What an API server sends, without NUL: Kubernetes takes it in annotations and messages, PostgreSQL in no text."""

import re
from typing import Any

import orjson

_NUL = b"\\u0000"
# After an even number of backslashes: an odd one belongs to the text.
_ESCAPED_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def loads(content: bytes) -> Any:
    """The JSON of an answer or of a line of a watch; NUL becomes the sign for what cannot be shown.

    One who may write an annotation would otherwise end every session that reports it.
    """
    if _NUL in content:
        content = _ESCAPED_NUL.sub(rb"\1\\ufffd", content)
    return orjson.loads(content)
