"""Starting a program so that it cannot outlive its parent."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Account(msgspec.Struct, frozen=True):
    """The user that a program runs as."""

    uid: int
    gid: int


def die_with_parent(death_signal: int, parent: int) -> Callable[[], None]:
    """Return what the child runs between fork and exec: ask the kernel for a signal when the parent is gone.

    The parent may already have died before the request: then the child ends at once. The kernel forgets the request
    when the user changes, so it is made after that.
    """

    def before_exec() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    return before_exec


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
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        preexec_fn=die_with_parent(death_signal, os.getpid()),  # noqa: PLW1509 - the caller has one thread
    )
