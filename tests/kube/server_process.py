"""One program in the background, with its output in a file."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tidesched_web.embedded.child import spawn


class ServerProcess:
    """A child that cannot outlive the tests."""

    def __init__(self, argv: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = spawn(argv, env=environment, output=output, death_signal=signal.SIGKILL)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text(errors="replace")[-3000:]

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, number: int = signal.SIGKILL) -> None:
        """Send the signal, and kill it where that does not do."""
        if not self.running:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(15)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that no process listens on now."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()
