"""One web process: `python -m tidesched_web.embedded.web`, with `--fd N --probe PATH` under `make up`.

There all web processes accept connections of one socket, which the supervisor opened: while one of them is replaced,
the others answer, and what comes meanwhile waits in the socket. The probe is a socket of this process alone, so that
the supervisor can ask each of them. The image and the chart say `--host` and `--port`: one process, with a socket of
its own.
"""

import argparse
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

APPLICATION = "tidesched_web.asgi:application"
SERVER: dict[str, Any] = {
    "http": "h11",
    "h11_max_incomplete_event_size": 32_768,  # a larger head is refused with 400
    "lifespan": "on",
    "access_log": False,
    "log_config": None,  # its lines are those of `settings.LOGGING`
    "proxy_headers": False,
    # A page that listens to live events never ends its request by itself.
    "timeout_graceful_shutdown": 3,
    # Longer than proxies and pools of clients keep an idle connection: they close it, not we under a request.
    "timeout_keep_alive": 75,
}


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; 0 then."""
    parser = argparse.ArgumentParser(prog="python -m tidesched_web.embedded.web")
    parser.add_argument("--fd", type=int, action="append", default=[], help="a listening socket; repeatable")
    parser.add_argument("--probe", type=Path, help="where the supervisor asks")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen, without --fd")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args(arguments)
    # uvicorn ends in good order at a signal and then raises it again: that is success.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    config = uvicorn.Config(APPLICATION, host=given.host, port=given.port, **SERVER)
    sockets = [socket.socket(fileno=one) for one in given.fd] or [config.bind_socket()]
    if given.probe:
        given.probe.unlink(missing_ok=True)
        probe = socket.socket(socket.AF_UNIX)
        probe.bind(str(given.probe))
        sockets.append(probe)
    uvicorn.Server(config).run(sockets=sockets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
