"""The engine: what one scheduling session decides is a function of snapshot, policy, memory, time and seed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scheduler_core.model.decision import Result
from scheduler_core.model.errors import BadInput, BrokenInvariant
from scheduler_core.model.memory import Memory
from scheduler_core.model.policy import PluginOption, Policy
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.scheduler import run_session
from scheduler_core.state.workspace import Workspace

if TYPE_CHECKING:
    from scheduler_core.serde.kubernetes import SnapshotBuilder, read_snapshot
    from scheduler_core.serde.policy import parse_policy
    from scheduler_core.serde.result import result_to_json

# Readers and writers sit above the scheduler; they are loaded when somebody asks for them.
_SERDE = {
    "SnapshotBuilder": "kubernetes",
    "read_snapshot": "kubernetes",
    "parse_policy": "policy",
    "result_to_json": "result",
}

__all__ = [
    "BadInput",
    "BrokenInvariant",
    "Memory",
    "PluginOption",
    "Policy",
    "Result",
    "Snapshot",
    "SnapshotBuilder",
    "Workspace",
    "parse_policy",
    "read_snapshot",
    "result_to_json",
    "run_session",
]


def __getattr__(name: str) -> Any:
    if name in _SERDE:
        return getattr(import_module(f"scheduler_core.serde.{_SERDE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
