"""What is made from the sources and the schema: is it up to date? Asked without Django, so that a start can go ahead.

As soon as pages have what they need of it, the processes are started beside the rest of `manage.py prepare`.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg

from tidesched_web.env import BASE_DIR, text

# In the data folder, from when this start has all but the demo.
PREPARED_FILE = "prepared"


def static_root() -> Path:
    """Return where the collected static files are."""
    return Path(text("STATIC_ROOT", str(BASE_DIR / "staticfiles")))


def static_stamp() -> Path:
    """Return the file that holds the fingerprint of what was collected."""
    root = static_root()
    return root.with_name(f"{root.name}.stamp")


def static_fingerprint() -> str:
    """Return a hash over our static files and the lock, which stands for those of the installed packages."""
    total = hashlib.sha256((BASE_DIR / "requirements" / "base.txt").read_bytes())
    for path in sorted((BASE_DIR / "static").rglob("*")):
        if path.is_file():
            # By content: times of files do not survive an image or a checkout.
            total.update(f"\0{path.relative_to(BASE_DIR)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def static_is_current() -> bool:
    """Tell whether the static files were collected from what is there now."""
    stamp = static_stamp()
    return static_root().is_dir() and stamp.exists() and stamp.read_text(encoding="ascii") == static_fingerprint()


def kernels_stamp(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that says for which engine the compiled code was made; None where its place is not known."""
    folder = environment.get("NUMBA_CACHE_DIR")
    return Path(folder) / "engine.stamp" if folder and Path(folder).is_dir() else None


def engine_fingerprint() -> str:
    """Return a hash over the engine's files, their place, which Numba looks at too, and the lock of what compiles."""
    total = hashlib.sha256((BASE_DIR / "requirements" / "base.txt").read_bytes() + f"{sys.version}{BASE_DIR}".encode())
    for path in sorted((BASE_DIR / "scheduler_core").rglob("*.py")):
        total.update(f"\0{path.relative_to(BASE_DIR)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def kernels_are_current(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the engine as it stands has been compiled where processes of this environment look."""
    stamp = kernels_stamp(environment)
    return stamp is not None and stamp.is_file() and stamp.read_text(encoding="ascii") == engine_fingerprint()


def stale_catalogues() -> list[Path]:
    """Return the message catalogues that are newer than what was compiled from them."""
    return [
        source
        for source in sorted((BASE_DIR / "locale").glob("*/LC_MESSAGES/*.po"))
        if not (compiled := source.with_suffix(".mo")).exists() or compiled.stat().st_mtime < source.stat().st_mtime
    ]


def schema_is_current(database_url: str) -> bool:
    """Tell whether the database has exactly the migrations of this code."""
    ours = {
        (path.parent.parent.name, path.stem) for path in (BASE_DIR / "tidesched_web").glob("*/migrations/[0-9]*.py")
    }
    try:
        with psycopg.connect(database_url, connect_timeout=5) as connection:
            if connection.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
                return False
            applied = connection.execute(
                "SELECT app, name FROM django_migrations WHERE app = ANY(%s)", [sorted({app for app, _name in ours})]
            )
            return set(applied.fetchall()) == ours
    except psycopg.Error:
        return False


def is_prepared(database_url: str) -> bool:
    """Tell whether the processes can be started at once."""
    return not stale_catalogues() and static_is_current() and schema_is_current(database_url)
