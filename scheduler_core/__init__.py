"""The engine: what one scheduling session decides is a function of snapshot, policy, memory, time and seed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scheduler_core.model.decision import Result
from scheduler_core.model.errors import BadInput, BrokenInvariant
from scheduler_core.model.memory import Memory
from scheduler_core.model.policy import PluginOption, Policy
from scheduler_core.model.snapshot import Snapshot

if TYPE_CHECKING:
    from scheduler_core.scheduler import run_session
    from scheduler_core.serde.kubernetes import SnapshotBuilder, read_snapshot
    from scheduler_core.serde.policy import parse_policy
    from scheduler_core.serde.result import result_to_json
    from scheduler_core.state.workspace import Workspace

# Loaded when they are asked for: the scheduler brings the compiler along, which takes its time, and readers and
# writers sit above the scheduler.
_LATER = {
    "SnapshotBuilder": "serde.kubernetes",
    "Workspace": "state.workspace",
    "parse_policy": "serde.policy",
    "read_snapshot": "serde.kubernetes",
    "result_to_json": "serde.result",
    "run_session": "scheduler",
}

__all__ = [
    "BadInput", "BrokenInvariant", "Memory", "PluginOption", "Policy", "Result", "Snapshot", "SnapshotBuilder",
    "Workspace", "parse_policy", "read_snapshot", "result_to_json", "run_session",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        found = globals()[name] = getattr(import_module(f"scheduler_core.{_LATER[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
