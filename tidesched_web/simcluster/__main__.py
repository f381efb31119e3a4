"""``python -m tidesched_web.simcluster``: run one simulated cluster."""

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from tidesched_web.simcluster.database import NewerData, open_database
from tidesched_web.simcluster.machine import Machine
from tidesched_web.simcluster.server import ClusterServer
from tidesched_web.simcluster.stages import demo_stage, empty_stage, medium_stage
from tidesched_web.simcluster.store import Store
from tidesched_web.simcluster.write_log import WriteLog


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, cluster: ClusterServer) -> None:
        super().__init__(config)
        self._cluster = cluster

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            sys.stdout.write(f"The simulated cluster listens at http://{host}:{port}\n")
        sys.stdout.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A stream that goes on for an hour must not hold up the end.
        self._cluster.bell.close()
        await super().shutdown(sockets)


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 then, 2 for arguments or data that cannot be used."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    # uvicorn ends in good order at a signal and then raises it again for the handler before: that is success.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    token = _read_token(options.token_file)
    if not token:
        return _refuse(f"{options.token_file}: a file with the bearer token is needed")
    options.data_dir.mkdir(parents=True, exist_ok=True)
    lock = _lock(options.data_dir)
    if lock is None:
        return _refuse(f"{options.data_dir}: another process runs this cluster")
    try:
        connection = open_database(options.data_dir / "cluster.db")
    except NewerData as error:
        return _refuse(str(error))
    store = Store(connection, ring_size=options.ring)
    try:
        machine = _start(store, options)
    except msgspec.MsgspecError as error:
        return _refuse(
            f"{options.data_dir}: the stored world is of another version: {error}; remove the folder to begin anew"
        )
    cluster = ClusterServer(machine, WriteLog(connection, rows=options.write_log_rows), token=token)
    config = uvicorn.Config(
        cluster.app(),
        host=options.host,
        port=options.port,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=3,
        # Longer than any client leaves a connection unused between two sessions.
        timeout_keep_alive=75,
    )
    server = _Server(config, cluster)
    asyncio.run(server.serve([config.bind_socket()]))
    connection.close()
    return 0


def _start(store: Store, options: argparse.Namespace) -> Machine:
    # What a cluster began as it stays.
    drawn = {"demo": demo_stage, "medium": medium_stage}.get(store.get_state("stage", options.stage))
    stage = drawn(options.seed) if drawn is not None else empty_stage(options.seed, options.start)
    return Machine.start(store, rate=options.rate, stage=stage)


def _end(_number: int, _frame: object) -> None:
    sys.exit(0)


def _refuse(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tidesched_web.simcluster", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="where the cluster keeps its state")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one and prints it")
    parser.add_argument("--token-file", type=Path, required=True, help="holds the bearer token of all clients")
    parser.add_argument("--stage", choices=("demo", "medium", "empty"), default="demo", help="what a new one begins as")
    parser.add_argument("--rate", type=_rate, default=144.0, help="virtual seconds per wall second")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives another history")
    parser.add_argument(
        "--start", type=_moment, default=None, help="RFC 3339 time at which an empty one begins, else now"
    )
    parser.add_argument("--ring", type=int, default=10_000, help="changes kept for watchers")
    parser.add_argument("--write-log-rows", type=int, default=200_000, help="rows kept in the write log")
    return parser


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate <= 100_000:
        raise argparse.ArgumentTypeError(f"{text}: more than 0, at most 100000")
    return rate


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _lock(folder: Path) -> Any:
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


if __name__ == "__main__":
    sys.exit(main())
