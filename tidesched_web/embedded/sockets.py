"""Where the unix sockets of an embedded installation live.

A socket's path may hold 107 bytes at most, so a deep data folder cannot hold its own. The place follows from the data
folder alone: any process that knows `DATA_DIR` finds the servers.
"""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

_LONGEST = 107
_LONGEST_NAME = len("/postgres/.s.PGSQL.5432.lock")


def socket_dir(data_dir: Path) -> Path:
    """Return the folder of the sockets: inside the data folder where the path is short enough, else a private one."""
    inside = data_dir / "run"
    if fits(inside):
        return inside
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"tidesched-{os.getuid()}-{digest}")


def fits(folder: Path) -> bool:
    """Tell whether the paths of its sockets are short enough for the kernel."""
    return len(os.fsencode(folder)) + _LONGEST_NAME <= _LONGEST


def make_private(folder: Path, *, passable: bool = False) -> None:
    """Make the folder with mode 0700, or 0711 where another user must reach its own folder inside. Raises
    PermissionError: where another user made it first, or it is a link: its sockets could be theirs."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a folder of this user")
    folder.chmod(0o711 if passable else 0o700)


def postgres_dir(data_dir: Path) -> Path:
    """Return the folder of PostgreSQL's socket: its own, since its owner may be another user."""
    return socket_dir(data_dir) / "postgres"


def valkey_socket(data_dir: Path) -> Path:
    return socket_dir(data_dir) / "valkey.sock"


def web_probe(data_dir: Path, name: str) -> Path:
    """Return the path of the socket at which one web process is asked whether it answers."""
    return socket_dir(data_dir) / f"{name}.sock"


# The owner of the schema, as whom `manage.py prepare` works, and the role of everything else.
DATABASE_OWNER = "tidesched"
DATABASE_ROLE = "tidesched_app"


def database_url(data_dir: Path, role: str = DATABASE_ROLE) -> str:
    """Return the address of the embedded PostgreSQL for the application's processes."""
    from urllib.parse import quote

    return f"postgresql://{role}@{quote(str(postgres_dir(data_dir)), safe='')}/tidesched"


def database_owner_url(data_dir: Path) -> str:
    """Return the address of the embedded PostgreSQL for the release step, which changes the schema."""
    return database_url(data_dir, DATABASE_OWNER)


def redis_url(data_dir: Path) -> str:
    """Return the address of the embedded Valkey."""
    return f"unix://{valkey_socket(data_dir)}?db=0"
