"""The document as it is served: made once in each process, kept in both forms, packed, and under an ETag.

It depends on nothing but the source, so a process makes it at the first request and never again. Clients that have it
ask with `If-None-Match` and get a 304.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from dataclasses import dataclass
from typing import Any

import brotli
from django.conf import settings
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from rest_framework.renderers import BaseRenderer

BROTLI_QUALITY, GZIP_LEVEL = 9, 9
_lock = threading.Lock()
_made: dict[str, Any] = {}
_kept: dict[str, Served] = {}


@dataclass(frozen=True, slots=True)
class Served:
    """One form of the document: its bytes by content encoding ("" is plain), and the ETag of all of them."""

    bodies: dict[str, bytes]
    etag: str

    def best(self, accepted: str) -> str:
        """The encoding that a client takes, by its `Accept-Encoding`."""
        taken = set()
        for word in accepted.split(","):
            name, _, quality = word.partition(";")
            if quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
                taken.add(name.strip().lower())
        return next((name for name in ("br", "gzip") if name in taken), "")

    def is_had(self, if_none_match: str) -> bool:
        """Whether a client that sends this `If-None-Match` has it already."""
        named = {word.strip().removeprefix("W/") for word in if_none_match.split(",")}
        return not named.isdisjoint({self.etag.removeprefix("W/"), "*"})


def served(renderer: BaseRenderer) -> Served:
    """The document in the form of ``renderer``."""
    with _lock:  # requests that come together at the start of a process wait for one making
        found = _kept.get(renderer.format or "")
        if found is None:
            found = _kept[renderer.format or ""] = _packed(_bytes(renderer.render(document())))
        return found


def forget() -> None:
    """Make it again at the next request, as a new process does."""
    with _lock:
        _made.clear()
        _kept.clear()


def document() -> Any:
    """The document itself, made once."""
    if not _made:
        with translation.override("en"):  # not in the language of the first reader
            _made.update(SchemaGenerator().get_schema(request=None, public=True))
    return _made


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _packed(plain: bytes) -> Served:
    digest = hashlib.blake2b(plain, digest_size=12).hexdigest()
    bodies = {
        "": plain,
        "br": brotli.compress(plain, quality=BROTLI_QUALITY),
        "gzip": gzip.compress(plain, GZIP_LEVEL, mtime=0),
    }
    return Served(bodies, f'W/"{settings.VERSION}-{digest}"')
