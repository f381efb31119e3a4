"""PostgreSQL and Valkey of one test process; the database is a copy of one that was migrated once for this schema."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.disposable_servers import DisposableServers
from tidesched_web.embedded.postgres import DATABASE

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "migrated"
# The database to name in CREATE DATABASE … TEMPLATE; nobody is connected to it.
TEMPLATE = DATABASE


def start(folder: Path) -> DisposableServers:
    """Start both; the caller stops them."""
    shutil.copytree(_migrated(), folder / "postgres", symlinks=True)
    servers = DisposableServers(folder)
    servers.start()
    return servers


def _migrated() -> Path:
    """The files of a PostgreSQL whose database has the schema; made by the first process that asks."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = CACHE / _fingerprint()
        if not made.exists():
            for older in CACHE.glob("*/"):
                shutil.rmtree(older)
            _make(made)
    return made


def _fingerprint() -> str:
    total = hashlib.sha256((ROOT / "requirements" / "base.txt").read_bytes())
    for path in sorted((ROOT / "tidesched_web").glob("*/migrations/*.py")):
        total.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _make(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="tidesched-migrated-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        servers = DisposableServers(folder)
        servers.start()
        try:
            environment = os.environ | {
                "DATA_DIR": name,
                "DATABASE_URL": servers.database_url,
                "REDIS_URL": servers.redis_url,
                "SECRET_KEY": secrets.token_urlsafe(50),
                "TIDESCHED_EMBEDDED": "0",
                "DJANGO_SETTINGS_MODULE": "tidesched_web.settings",
            }
            command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
        finally:
            servers.stop()
        unfinished = target.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(servers.postgres.folder, unfinished, symlinks=True)
        unfinished.rename(target)
