"""The data folder of one installation: its lock, its secrets, and `runtime.json`, which says what runs."""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import time
from pathlib import Path

import msgspec
from cryptography.fernet import Fernet

from tidesched_web import env
from tidesched_web.embedded import identity
from tidesched_web.embedded.bootstrap import why_unusable
from tidesched_web.embedded.errors import StartError
from tidesched_web.env import Process, Runtime, runtime_file

_PATIENCE_SECONDS = 15.0
_SHORTEST_KEY = 43
_NEW_KEY = "head -c 32 /dev/urandom | base64 | tr '+/' '-_'"
_HOLDER_BYTES = 64
_PROBE_BYTES = 65_536
_REMEDIES = {
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room within this user's quota of the disk",
    errno.EROFS: "mount it so that it can be written",
}
_REMEDY = "make it writable for this user"


class DataFolder:
    """A data folder that this process holds, from `open` until the process and all its children are gone.

    The lock is the kernel's (flock), so it is never stale. The children inherit it: as long as one of them lives, a
    second start cannot touch their files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock_fd = -1

    def open(self) -> None:
        """Make the folder where there is none and take its lock. Raises StartError: where it cannot be written, or
        another TideSched runs on it."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Under root PostgreSQL runs as another user, who must pass through to its own folder.
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
            self.lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            message, hint = why_unusable(error, str(self.path))
            raise StartError(
                f"the data folder {self.path} cannot be used: {message}",
                f"{hint}; or choose another one: make up DATA_DIR=/path/to/folder",
            ) from None
        if not self._try_lock():
            self._wait_for_a_killed_start()
        os.pwrite(self.lock_fd, f"{os.getpid()} {identity.started(os.getpid())}".ljust(_HOLDER_BYTES).encode(), 0)
        self.write_runtime(Runtime())

    @property
    def holder(self) -> Process:
        """The supervisor that took the lock last; it may have ended since."""
        try:
            pid, start = (self.path / "lock").read_text(encoding="ascii").split()
            return Process(int(pid), start)
        except (OSError, ValueError):
            return Process()

    def close(self) -> None:
        """Say that nothing runs any more and give the lock back."""
        runtime_file(self.path).unlink(missing_ok=True)
        os.close(self.lock_fd)
        self.lock_fd = -1

    def make_secrets(self) -> None:
        """Make the keys of this installation where there are none yet. Raises StartError: where a key cannot be one,
        or the key of what is encrypted in the database is gone."""
        keys = self.path / "tidesched_keys"
        if not keys.exists() and not env.text("TIDESCHED_KEYS") and (self.path / "admin.json").exists():
            raise StartError(
                f"the key file {keys} is gone: stored cluster credentials cannot be read without it",
                f"put it back from the back-up; without one: {_NEW_KEY} > {keys}, and enter the credentials anew",
            )
        self._make_secret("secret_key", secrets.token_urlsafe(50))
        self._make_secret("tidesched_keys", Fernet.generate_key().decode("ascii"))

    def lack_of_room(self, needed: int) -> str:
        """Say why the folder does not take what has to be written, or has less than ``needed`` bytes free."""
        probe = self.path / "room"
        try:
            probe.write_bytes(bytes(_PROBE_BYTES))
            probe.unlink()
            if shutil.disk_usage(self.path).free < needed:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(probe))
        except OSError as error:
            with contextlib.suppress(OSError):
                probe.unlink()
            return f"{self.path} cannot be written ({error.strerror}): {_REMEDIES.get(error.errno or 0, _REMEDY)}"
        return ""

    def write_runtime(self, runtime: Runtime) -> None:
        """Publish what runs, readable by this user alone: an address may hold a password."""
        text = msgspec.json.format(msgspec.json.encode(runtime)).decode()
        write_privately(runtime_file(self.path), text + "\n")

    def read_runtime(self) -> Runtime:
        """Return what the last start published."""
        try:
            return msgspec.json.decode(runtime_file(self.path).read_bytes(), type=Runtime)
        except (OSError, msgspec.DecodeError):
            return Runtime()

    def _make_secret(self, name: str, value: str) -> None:
        path = self.path / name
        if path.exists():
            if len(path.read_text(encoding="ascii", errors="replace").strip()) < _SHORTEST_KEY:
                raise StartError(
                    f"the key file {path} is empty or too short",
                    "put it back from the back-up; if no installation ever ran on this folder, delete the file",
                )
            return
        write_privately(path, value + "\n")

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_for_a_killed_start(self) -> None:
        """Wait for the children of a supervisor that was killed; end those that do not go by themselves."""
        last, holder = self.read_runtime(), self.holder
        if identity.is_same(holder.pid, holder.started):
            raise StartError(
                f"TideSched already runs on {self.path} (process {holder.pid}, {last.web_url})",
                "stop it with `make down`, or choose another one: make up DATA_DIR=/path/to/folder PORT=8001",
            )
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if self._try_lock():
                return
            time.sleep(0.1)
        end_processes(last.processes)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._try_lock():
            if time.monotonic() > deadline:
                raise StartError(
                    f"processes of an earlier start still hold {self.path}/lock",
                    f"find them with `fuser {self.path}/lock`, end them, then start again",
                )
            time.sleep(0.1)


def write_privately(target: Path, text: str) -> None:
    """Beside it and then renamed: after a full disk there is the whole of it, or what was there before."""
    fresh = target.with_name(f"{target.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(target)


def end_processes(processes: dict[str, Process]) -> None:
    """Kill what is left of an earlier start."""
    for process in processes.values():
        identity.kill_if_same(process.pid, process.started)
