"""``TIDESCHED_FAILPOINTS`` holds ``name=action[:argument]`` joined by ``;``; ``@N`` waits for the N-th time. Each fires
once per process; with ``TIDESCHED_FAILPOINTS_ONCE=DIRECTORY`` once for all.
"""

import os
import signal
import threading
import time
from pathlib import Path

import msgspec

VARIABLE = "TIDESCHED_FAILPOINTS"
ONCE_VARIABLE = "TIDESCHED_FAILPOINTS_ONCE"

# Every name that a test may set, with the step of the pipeline that it stands in.
NAMES: dict[str, str] = {
    "lease.taken": "the lease is held, nothing is read yet",
    "settle.before_send": "an open decision is about to be finished",
    "settle.after_send": "an open decision was finished in the cluster, not yet marked",
    "session.decided": "the engine has decided, nothing is written",
    "session.before_commit": "session, memory and decisions are written, not committed",
    "session.committed": "committed, nothing is sent",
    "send.before_batch": "a batch is marked as being sent; the lease was checked",
    "bind.between_members": "some members of a gang are bound, others not",
    "bind.sent": "a batch of binds is in the cluster, not marked",
    "evict.dry_run_done": "every member passed the dry run, none is evicted",
    "evict.between_members": "some members of a gang are evicted, others not",
    "evict.sent": "a batch of evictions is in the cluster, not marked",
    "send.marked": "a batch is marked as done",
    "record.before_commit": "usage and gangs are about to be recorded",
    "session.finished": "the session is finished, not yet announced",
}


_ACTIONS = ("kill9", "pause", "lock", "raise", "sleep")


class FailpointRaised(RuntimeError):
    """What the action ``raise`` raises."""


class _Failpoint(msgspec.Struct):
    action: str
    argument: str
    at: int
    reached: int = 0


class BadFailpoint(ValueError):
    """A failpoint that is never reached would make a test pass for nothing."""


def parse(text: str) -> dict[str, _Failpoint]:
    found: dict[str, _Failpoint] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, _, what = part.partition("=")
        action, _, argument = what.partition(":")
        if name not in NAMES:
            raise BadFailpoint(f"{VARIABLE}: no failpoint is called {name!r}; there are {', '.join(NAMES)}")
        if action not in _ACTIONS:
            raise BadFailpoint(f"{VARIABLE}: {name} has the action {action!r}; {', '.join(_ACTIONS)}")
        at = int(argument[1:]) if argument.startswith("@") else 1
        found[name] = _Failpoint(action, argument, at)
    return found


_active = parse(os.environ.get(VARIABLE, ""))
_once = os.environ.get(ONCE_VARIABLE, "")
_lock = threading.Lock()


def reach(name: str, *, acts: bool = True) -> None:
    if not _active or not acts:
        return
    point = _active.get(name)
    if point is None:
        return
    with _lock:
        point.reached += 1
        if point.reached != point.at:
            return
    if _once and not _first(name):
        return
    _act(name, point)


def _first(name: str) -> bool:
    try:
        os.close(os.open(Path(_once) / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _act(name: str, point: _Failpoint) -> None:
    if point.action == "kill9":
        os.kill(os.getpid(), signal.SIGKILL)
    elif point.action == "pause":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif point.action == "lock":
        threading.Event().wait()
    elif point.action == "sleep":
        time.sleep(float(point.argument))
    else:
        raise FailpointRaised(f"failpoint {name}")
