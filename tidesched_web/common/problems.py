"""What stands in the way of this installation: one sentence each, with what to do, in the terminal and in `/readyz`.

The supervisor writes them, and takes each away when its cause is gone.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tidesched_web import env

_FILE, _BYTES = "problems.json", 8192


class Problems:
    """The file is written over in place: it had its room before the disk was full."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._file = folder / _FILE
        self._say = say
        self._sentences: dict[str, str] = {}
        with contextlib.suppress(OSError):
            self._file.write_bytes(b"{}".ljust(_BYTES))

    def put(self, name: str, sentence: str) -> None:
        """Say it once, until it changes; an empty sentence: the problem is gone."""
        if self._sentences.get(name, "") == sentence:
            return
        self._say(sentence or f"{name}: this problem is gone")
        self._sentences[name] = sentence
        current = {key: text[:1000] for key, text in self._sentences.items() if text}
        with contextlib.suppress(OSError):
            place = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(place, msgspec.json.encode(current).ljust(_BYTES), 0)
            finally:
                os.close(place)


def address(url: str) -> str:
    """Where a server is, without its name and password: host and port, or the path of its socket."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path


def current() -> dict[str, str]:
    """The problems that the supervisor of this data folder sees now, by name."""
    try:
        return msgspec.json.decode((env.data_dir() / _FILE).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}
