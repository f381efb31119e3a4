"""Kubernetes objects to a :class:`~scheduler_core.model.snapshot.Snapshot`."""

from scheduler_core.serde.kubernetes.builder import SnapshotBuilder
from scheduler_core.serde.kubernetes.listing import read_snapshot

__all__ = ["SnapshotBuilder", "read_snapshot"]
