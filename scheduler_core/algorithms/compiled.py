"""The one way to compile a function of the engine: ``@compiled``.

Compiled code holds no interpreter lock, so that a heartbeat thread goes on while it runs, and is kept on disk, so that
a process compiles it once for all. The kept code lies in a folder of its own for each state of the engine's files:
Numba itself does not notice that a function which another file calls has changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

# Kept code of so many earlier states of the engine, for going back and forth between two versions.
_STATES_KEPT = 3


def compiled(function: F) -> F:
    """Compile on first use, without the interpreter lock, IEEE arithmetic as written, kept on disk."""
    return cast("F", numba.njit(nogil=True, cache=_caching)(function))


def compiled_inline(function: F) -> F:
    """A small function that compiled ones call; it is compiled into them."""
    return cast("F", numba.njit(nogil=True, inline="always")(function))


def fingerprint() -> str:
    """Hash of every file of the engine and of what compiles it; 16 hexadecimal digits."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256(f"{sys.version} numba {numba.__version__} numpy {np.__version__}".encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """A folder that can be written: ``NUMBA_CACHE_DIR``, the user's cache, the temporary folder, or none."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    homes = (
        [Path(given)] if given else [_user_cache(), Path(tempfile.gettempdir()) / f"tidesched-kernels-{os.getuid()}"]
    )
    name = fingerprint()
    for home in homes:
        folder = home / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if folder.stat().st_uid == os.getuid() and os.access(folder, os.W_OK):
            _forget_old(home, folder)
            return folder
    return None


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path("~/.cache").expanduser()) / "tidesched" / "kernels"


def _forget_old(home: Path, current: Path) -> None:
    os.utime(current)
    found = [path for path in home.iterdir() if path.is_dir() and len(path.name) == len(current.name)]
    found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[1 + _STATES_KEPT :]:
        shutil.rmtree(path, ignore_errors=True)


_folder = _cache_folder()
_caching = _folder is not None
if _folder is not None:
    numba.config.CACHE_DIR = str(_folder)  # type: ignore[attr-defined]  # made at import, unknown to the checker
