"""A server that was stopped (SIGSTOP) with its processes is ended whole: its successor finds nothing held."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.waiting import until
from tidesched_web.embedded import identity
from tidesched_web.embedded.supervisor import kill_all


def test_what_a_stopped_server_started_is_ended_with_it_also_in_groups_of_its_own() -> None:
    """As PostgreSQL does it: each of its processes leads a group, and none sees the end of the first while stopped."""
    server = subprocess.Popen(["sh", "-c", "setsid sleep 300 & setsid sleep 300 & wait"], process_group=0)
    try:
        assert until(lambda: len(identity.descendants(server.pid)) == 2)
        below = identity.descendants(server.pid)
        assert until(lambda: all(os.getpgid(pid) == pid for pid in below))
        for pid in (server.pid, *below):
            os.kill(pid, signal.SIGSTOP)
        kill_all(server)
        assert server.wait(60) == -signal.SIGKILL
        assert until(lambda: not any(identity.is_same(pid, start) for pid, start in below.items()))
    finally:
        for pid, start in below.items():
            identity.kill_if_same(pid, start)
