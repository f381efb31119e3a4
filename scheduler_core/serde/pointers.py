"""Pointers into a document, as errors show them; of a module of its own, since every reader needs them."""

import re

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def child(path: str, key: str) -> str:
    """Pointer of ``key`` below ``path``: ``.cpu``, or ``["nvidia.com/gpu"]`` where the key is not a plain word."""
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f'{path}["{key}"]'
