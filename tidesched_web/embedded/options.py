"""What a person may say to `make up`, checked before anything starts."""

import errno
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tidesched_web import env
from tidesched_web.embedded import sockets
from tidesched_web.embedded.errors import StartError

# What only the release step may know, and what belongs to `make`.
_NOT_FOR_CHILDREN = {"ADMIN_PASSWORD", "DATABASE_OWNER_URL", "MAKEFLAGS", "MAKELEVEL"}
# So much of the medium demo's history is kept.
_MEDIUM_LIMITS = {"RETENTION_ROLLUPS": "2000000", "RETENTION_TIDE_POINTS": "200000"}
# Each web process holds up to 16 connections of the embedded PostgreSQL's 120.
MOST_BY_DEFAULT, MOST_WEB_PROCESSES = 2, 4
_BACKLOG = 2048
# PostgreSQL takes paths of less than 1024 bytes, those of its own files included.
LONGEST_FOLDER = 900
WILDCARDS = {"0.0.0.0", "::", ""}  # noqa: S104 - compared, not bound


class Options(msgspec.Struct, frozen=True):
    """Where to listen, where to keep data, which servers to use."""

    host: str
    port: int
    data_dir: Path
    database_url: str
    database_owner_url: str
    redis_url: str
    demo: bool
    web_processes: int = 1

    @property
    def web_url(self) -> str:
        """The address to open in a browser on this machine."""
        host = "127.0.0.1" if self.host in WILDCARDS else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def read_options() -> Options:
    """Read the options from the environment. Raises StartError: where one of them cannot be right."""
    try:
        port, demo, _size = env.number("PORT", 8000), env.flag("DEMO", default=True), env.demo_size()
        web_processes = env.number("WEB_PROCESSES", min(MOST_BY_DEFAULT, os.cpu_count() or 1))
        env.origin("PUBLIC_URL")
    except ValueError as error:
        raise StartError(str(error), "correct the variable or leave it out") from None
    if not 1 <= port <= 65535:
        raise StartError(f"PORT={port}: a port is a number from 1 to 65535", "for example: make up PORT=8001")
    if not 1 <= web_processes <= MOST_WEB_PROCESSES:
        raise StartError(
            f"WEB_PROCESSES={web_processes}: a number from 1 to {MOST_WEB_PROCESSES}",
            "leave it out: there are two where the machine has two processors",
        )
    folder, database_url = env.data_dir(), env.text("DATABASE_URL")
    options = Options(
        host=env.text("HOST", "127.0.0.1"),
        port=port,
        data_dir=folder,
        database_url=database_url,
        database_owner_url=env.text("DATABASE_OWNER_URL")
        or ("" if database_url else sockets.database_owner_url(folder)),
        redis_url=env.text("REDIS_URL"),
        demo=demo,
        web_processes=web_processes,
    )
    _check_length(folder)
    _check_password(os.environ.get("ADMIN_PASSWORD", ""))
    _check_scheme("DATABASE_URL", options.database_url, ("postgres", "postgresql"))
    _check_scheme("DATABASE_OWNER_URL", options.database_owner_url, ("postgres", "postgresql"))
    _check_scheme("REDIS_URL", options.redis_url, ("redis", "rediss", "unix"))
    return options


def _check_length(folder: Path) -> None:
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        raise StartError(
            f"DATA_DIR is too long: {len(os.fsencode(folder))} bytes of at most {LONGEST_FOLDER}",
            "choose a folder that is not so deep",
        )
    if not sockets.fits(sockets.socket_dir(folder)):
        raise StartError(
            f"the folder of temporary files {sockets.socket_dir(folder).parent} is too deep for sockets",
            "set TMPDIR to a shorter path, such as /tmp",
        )


def _check_password(given: str) -> None:
    if given and len(given) < env.PASSWORD_LENGTH:
        raise StartError(
            f"ADMIN_PASSWORD has {len(given)} characters: a password has at least {env.PASSWORD_LENGTH}",
            "give a longer one, or leave the variable out: a password is then made",
        )


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen on each address of the host's name. Raises StartError: where another program listens there, or the
    address is not this machine's."""
    opened: list[socket.socket] = []
    try:
        for family, kind, protocol, _name, address in socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM):
            opened.append(one := socket.socket(family, kind, protocol))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(_BACKLOG)
    except OSError as error:
        for one in opened:
            one.close()
        if error.errno == errno.EADDRINUSE:
            raise StartError(
                f"port {port} of {host} is in use by another program",
                f"stop that program, or choose another port: make up PORT={port + 1 if port < 65535 else 8000}",
            ) from None
        raise StartError(
            f"cannot listen on HOST={host} PORT={port}: {error.strerror or error}",
            "choose an address of this machine and a port above 1023",
        ) from None
    return opened


def free_port(preferred: int) -> int:
    """Return the preferred port of the loopback interface if it is free, else any free one."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise StartError("no free port on 127.0.0.1", "close programs that hold connections, then start again")


def child_environment(options: Options, additions: dict[str, str]) -> dict[str, str]:
    """Return the environment of our own processes: this one's, with what the supervisor has decided."""
    kept = {key: value for key, value in os.environ.items() if key not in _NOT_FOR_CHILDREN}
    if options.demo and env.demo_size() == "M":
        kept = _MEDIUM_LIMITS | kept
    return kept | {
        "HOST": options.host,
        "PORT": str(options.port),
        "DATA_DIR": str(options.data_dir),
        "DEMO": "1" if options.demo else "0",
        "TIDESCHED_EMBEDDED": "1",
        "PYTHONUNBUFFERED": "1",
        "WEB_PROCESSES": str(options.web_processes),
        # The engine's compiled code: made while the installation is prepared, found by every process.
        "NUMBA_CACHE_DIR": kept.get("NUMBA_CACHE_DIR") or str(options.data_dir / "kernels"),
        **additions,
    }


def _check_scheme(name: str, url: str, schemes: tuple[str, ...]) -> None:
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise StartError(f"the address in {name} cannot be read: {error}", "correct the variable") from None
    if url and url.partition("://")[0] not in schemes:
        raise StartError(
            f"{name} must start with {' or '.join(f'{scheme}://' for scheme in schemes)}",
            "correct the variable, or leave it out to use the server that TideSched brings",
        )
