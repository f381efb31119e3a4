"""What changed of the pods from session to session, for books that count along: the one place that asks editions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidesched_web.engine.model import Edition, Pod

Change = tuple[str, Pod | None]


class PodChanges:
    """Follows the editions of the watch: O(what changed) where these are known, else O(pods).

    Asked with each session: only the last few editions know how they differ.
    """

    def __init__(self) -> None:
        self._pods: Sequence[Pod] | None = None

    def follow(self, pods: Sequence[Pod]) -> tuple[bool, Iterable[Change]]:
        """Whether all begins anew, and the pods to put in by namespace/name (None: it is gone)."""
        before, self._pods = self._pods, pods
        changes = pods.changes_since(before) if before is not None and isinstance(pods, Edition) else None
        if changes is None:
            return True, ((pod.key, pod) for pod in pods)
        return False, changes[0].items()
