"""What the environment says, read in one place. Django-free, so that the supervisor and the settings share it.

A value comes from the variable itself, else from `$DATA_DIR/runtime.json` (written by the supervisor while its servers
run), else from the default. Secrets come from the variable, else from a file of the data folder.
"""

import ipaddress
import os
import re
from pathlib import Path

import msgspec

BASE_DIR = Path(__file__).resolve().parent.parent
# No password is shorter, the first account's included.
PASSWORD_LENGTH = 10
_ORIGIN = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?", re.IGNORECASE)
_RATE = re.compile(r"[1-9][0-9]*/[0-9]*[smhd]/(ip|key|user)")


class Process(msgspec.Struct, frozen=True):
    """One process: its number and when it started, since numbers are used again."""

    pid: int = 0
    started: str = ""


class Runtime(msgspec.Struct, omit_defaults=True):
    """`runtime.json`: where the servers of a running installation are, for every other process that asks."""

    database_url: str = ""
    database_owner_url: str = ""
    redis_url: str = ""
    web_url: str = ""
    simcluster_url: str = ""
    simcluster_token_file: str = ""
    processes: dict[str, Process] = {}


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding blanks; an empty one counts as not set."""
    return os.environ.get(name, "").strip() or default


def origin(name: str) -> str:
    """Return an address of a host's root, without its last slash. Raises ValueError: for anything else."""
    value = text(name).rstrip("/")
    if not value or _ORIGIN.fullmatch(value):
        return value
    said = "expected such as https://tidesched.example.com"
    if "/" in value.partition("://")[2]:
        said = "TideSched is served at the root of a host and below no path: give it a host name of its own"
    raise ValueError(f"{name}={value.rpartition('@')[2]!r}: {said}")


def choice(name: str, default: str, *others: str) -> str:
    """Return one of some words. Raises ValueError: for any other."""
    value = text(name, default).lower()
    if value not in (default, *others):
        raise ValueError(f"{name}={value!r}: expected one of {', '.join((default, *others))}")
    return value


def demo_size() -> str:
    """Return how large the demo is, S or M. Raises ValueError: for any other word."""
    size = text("DEMO_SIZE", "S").upper()
    if size not in {"S", "M"}:
        raise ValueError(f"DEMO_SIZE={size!r}: expected S or M")
    return size


def flag(name: str, *, default: bool) -> bool:
    """Return a yes/no variable. Raises ValueError: for any other word, because a mistyped switch must not silently
    mean "no"."""
    value = text(name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ValueError(f"{name}={value!r}: expected one of 1, true, yes, on, 0, false, no, off")


def number(name: str, default: int) -> int:
    """Return a whole-number variable."""
    value = text(name)
    if not value:
        return default
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name}={value!r}: expected a whole number") from None


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Return a comma-separated variable as a list."""
    value = text(name)
    return [word.strip() for word in value.split(",") if word.strip()] if value else list(default)


def networks(name: str) -> list[str]:
    """Return a comma-separated variable of addresses and networks. Raises ValueError: for a word that is neither, so
    that a mistyped proxy is noticed at the start."""
    try:
        return [str(ipaddress.ip_network(word, strict=False)) for word in words(name)]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def rates(name: str, default: str) -> str:
    """Return limits such as ``10/m/ip,5/5m/key``; ``off`` is no limit."""
    value = text(name, default)
    if value == "off":
        return ""
    for rate in value.split(","):
        if not _RATE.fullmatch(rate.strip()):
            raise ValueError(f"{name}={value!r}: expected limits such as {default}, or off")
    return value


def data_dir() -> Path:
    """Return the data folder: absolute, links resolved, perhaps not made yet."""
    return Path(BASE_DIR, text("DATA_DIR", ".data")).expanduser().resolve()


def runtime_file(folder: Path) -> Path:
    """Return where the supervisor of this data folder says what runs."""
    return folder / "runtime.json"


def runtime() -> Runtime:
    """Return what the supervisor of this data folder last wrote; all fields empty when nothing runs."""
    try:
        return msgspec.json.decode(runtime_file(data_dir()).read_bytes(), type=Runtime)
    except (FileNotFoundError, PermissionError, NotADirectoryError, msgspec.DecodeError):
        return Runtime()


def secret(name: str, file: str) -> str:
    """Return a secret from the variable, else from the data folder's file, else nothing (its user then refuses)."""
    value = text(name)
    if value:
        return value
    try:
        return (data_dir() / file).read_text(encoding="ascii").strip()
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return ""
