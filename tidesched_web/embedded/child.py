"""Starting a program so that it cannot outlive its parent."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from tidesched_web.embedded.account import Account, become, die_with_parent


def before_exec(account: Account | None, death_signal: int) -> Callable[[], None]:
    """Return what a child does between fork and exec: change its user, then tie its life to its parent's."""
    parent = os.getpid()

    def prepare() -> None:
        if account is not None:
            become(account)
        die_with_parent(death_signal)
        if os.getppid() != parent:  # it died before the request
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    account: Account | None = None,
    death_signal: int = signal.SIGTERM,
    cwd: Path | None = None,
    output: int | IO[bytes] = subprocess.PIPE,
    keep_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own, its two outputs in one stream.

    Must be called by the main thread: the kernel counts the end of the calling *thread* as the parent's death.
    """
    return subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
        pass_fds=tuple(keep_fds),
        preexec_fn=before_exec(account, death_signal),  # noqa: PLW1509 - the callers have one thread
    )


def run(argv: Sequence[str], *, env: Mapping[str, str], account: Account | None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as the account and return what it said."""
    return subprocess.run(
        list(argv),
        env=dict(env),
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=before_exec(account, signal.SIGKILL),
    )
