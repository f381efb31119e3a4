import re
from typing import Any

import orjson

_NUL = b"\\u0000"
# After an even number of backslashes: an odd one belongs to the text.
_ESCAPED_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def loads(content: bytes) -> Any:
    """NUL becomes a sign: one who may write an annotation would otherwise end every session that reports it."""
    if _NUL in content:
        content = _ESCAPED_NUL.sub(rb"\1\\ufffd", content)
    return orjson.loads(content)
