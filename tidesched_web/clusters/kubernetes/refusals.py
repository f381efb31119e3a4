"""Writes that a cluster refuses or does not answer, by object: each of them rests, and one that repeats is told."""

import threading
from dataclasses import dataclass

from tidesched_web.clusters.kubernetes.installation_lease import monotonic
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind

FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 1.0, 60.0
# What is not sent again so long after its rest is not wanted any more.
FORGET_SECONDS = 30.0
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Decided anew as a whole: the gang rests, not its pods.
_ACTS = {("create", "pods/binding"), ("create", "pods/eviction"), ("delete", "pods")}


@dataclass(frozen=True)
class Write:
    """A verb on an object in the words of RBAC: ``create``, ``pods/binding``, ``namespace/name``."""

    verb: str
    resource: str
    name: str

    @classmethod
    def of(cls, method: str, path: str) -> "Write":
        parts = path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        resource, name = "/".join(parts[:1] + parts[2:]), parts[1] if len(parts) > 1 else ""
        return cls(_VERBS[method], resource, f"{namespace}/{name}" if namespace else name)


@dataclass(frozen=True)
class Refusal:
    """``said``: the server's words. ``times``: in a row. ``until``: it is not sent before (monotonic)."""

    write: Write
    said: str
    times: int
    until: float


class Refusals:
    """Of one cluster. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Write, Refusal] = {}

    def resting(self, write: Write) -> Refusal | None:
        known = self._known.get(write)
        return known if known and (write.verb, write.resource) not in _ACTS and monotonic() < known.until else None

    def note(self, write: Write, outcome: Outcome) -> None:
        silent = outcome.kind is OutcomeKind.UNREACHABLE and not (outcome.away or outcome.retry_after)
        with self._lock:
            if not silent and (outcome.kind is not OutcomeKind.REFUSED or outcome.of_budget):
                self._known.pop(write, None)
                return
            times = self._known[write].times + 1 if write in self._known else 1
            rest = min(FIRST_REST_SECONDS * 2 ** min(times - 1, 20), LONGEST_REST_SECONDS)
            rest = FIRST_REST_SECONDS if (write.verb, write.resource) in _ACTS else rest
            said = f"{outcome.reason}: {outcome.message}" if outcome.message else outcome.reason
            self._known[write] = Refusal(write, said, times, monotonic() + rest)

    def names(self, resource: str) -> set[str]:
        """Objects of a resource of which some write rests."""
        now = monotonic()
        with self._lock:
            known = list(self._known.values())
        return {one.write.name for one in known if now < one.until and one.write.resource.startswith(resource)}

    def repeated(self) -> dict[tuple[str, str], list[Refusal]]:
        """By verb and resource: what was not taken twice in a row or of two objects, and not long ago."""
        found: dict[tuple[str, str], list[Refusal]] = {}
        with self._lock:
            edge = monotonic() - FORGET_SECONDS
            self._known = {write: known for write, known in self._known.items() if known.until > edge}
            for known in sorted(self._known.values(), key=lambda known: (-known.times, known.write.name)):
                found.setdefault((known.write.verb, known.write.resource), []).append(known)
        return {key: group for key, group in sorted(found.items()) if sum(known.times for known in group) > 1}
