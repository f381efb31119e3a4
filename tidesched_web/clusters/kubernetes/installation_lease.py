"""A restored back-up has a database of its own: by this object only one installation writes to a cluster.

Judged as client-go does: another's Lease is over once its record has not changed for its own duration, by the monotonic
clock of who looks. What the clocks of others say is shown and never compared."""

import os
import secrets
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from tidesched_web import env
from tidesched_web.clusters.kubernetes.client import TIMEOUT_SECONDS, KubernetesClient
from tidesched_web.clusters.kubernetes.manifests import rfc3339_micro
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import LEASE, NAMESPACE
from tidesched_web.clusters.kubernetes.verbs import LEASE_NAME, LEASE_NAMESPACE

LEASE_SECONDS = float(os.environ.get("TIDESCHED_LEASE_SECONDS", "15"))
# Who could not hold it does not ask again sooner, however many threads want to write.
AGAIN_SECONDS = 1.0
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_VARIABLE, _FILE = "TIDESCHED_INSTALLATION_ID", "installation_id"
_PATH = LEASE.path(LEASE_NAMESPACE, LEASE_NAME)


def monotonic() -> float:
    """Seconds that never go back and also pass while the machine sleeps or the process is stopped."""
    return time.clock_gettime(_CLOCK)


@cache
def installation_id() -> str:
    """Not in the database on purpose: a restored back-up must not take itself for the one it was taken from."""
    named = env.text(_VARIABLE)
    if named:
        return named
    folder = env.data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _FILE
    made = f"tidesched-{secrets.token_hex(8)}"
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(made + "\n")
    return made


@dataclass(frozen=True)
class LeaseAnswer:
    """``held``: this installation may write. ``holder``: who may, as far as it is known."""

    held: bool
    holder: str
    outcome: Outcome

    @property
    def why(self) -> str:
        if self.holder:
            return f"Nothing is sent: the cluster's Lease is held by {self.holder}."
        return self.outcome.message or self.outcome.reason


class InstallationLease:
    """The Lease of one cluster as this process sees it. Threads may share it.

    ``why``: it is not held, empty where it is. ``went_back``: what the server said that cannot be after what it had
    said before; empty = nothing of the kind."""

    def __init__(self, installation: str = "", *, seconds: float = LEASE_SECONDS) -> None:
        self._installation, self._seconds = installation or installation_id(), seconds
        self._lock = threading.Lock()
        self._record: tuple[Any, ...] = ()
        self._changed_at = float("-inf")
        self._held_until = self._asked_at = float("-inf")
        self._newest = 0
        self.why = ""
        self.went_back = ""

    def held(self, client: KubernetesClient) -> bool:
        """Whether a request that is sent now is over before anybody else may write; renewed where it is due."""
        with self._lock:
            if monotonic() >= max(self._held_until - self._seconds * 2 / 3, self._asked_at + AGAIN_SECONDS):
                self._renew(client)
        return monotonic() + min(TIMEOUT_SECONDS, self._seconds / 3) < self._held_until

    def begin_anew(self) -> None:
        """What was seen of an older state counts no more."""
        self.went_back, self._newest = "", 0

    def hold(self, client: KubernetesClient) -> LeaseAnswer:
        """Take or renew it. The write carries the version that was read, so of two that find it free one gets it."""
        with self._lock:
            return self._renew(client)

    def _renew(self, client: KubernetesClient) -> LeaseAnswer:
        asked = self._asked_at = monotonic()
        answer = self._hold(client, asked)
        if answer.outcome.kind is OutcomeKind.CONFLICT:
            answer = self._hold(client, asked)
        if answer.outcome.kind is OutcomeKind.CONFLICT and self._record[:1] == (self._installation,):
            # Another process of this installation has written it since it was asked.
            answer = LeaseAnswer(True, self._installation, answer.outcome)
        if answer.held:
            self._held_until = asked + self._seconds
        elif answer.holder:
            self._held_until = float("-inf")
        self.why = "" if answer.held else answer.why
        return answer

    def _hold(self, client: KubernetesClient, now: float) -> LeaseAnswer:
        found = client.send("GET", _PATH)
        if found.kind is OutcomeKind.GONE:
            return self._create(client)
        if found.body is None:
            return LeaseAnswer(False, "", found)
        self._look(found.body)
        spec = dict(found.body.get("spec") or {})
        holder = str(spec.get("holderIdentity") or "")
        lasts = float(spec.get("leaseDurationSeconds") or 0)
        if holder not in ("", self._installation) and now < self._changed_at + lasts:
            return LeaseAnswer(False, holder, found)
        if holder != self._installation:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = rfc3339_micro(time.time())
        return self._answer(client.send("PUT", _PATH, {**found.body, "spec": spec | self._held()}), holder)

    def _look(self, lease: dict[str, Any]) -> None:
        version, spec = int(lease["metadata"]["resourceVersion"]), lease.get("spec") or {}
        if version < self._newest:
            self.went_back = f"its Lease was of version {self._newest} and is of version {version}"
        self._newest = version
        record = tuple(spec.get(name) for name in ("holderIdentity", "acquireTime", "renewTime", "leaseTransitions"))
        if record != self._record:
            # Not since it was asked: the process may have been stopped in between.
            self._record, self._changed_at = record, monotonic()

    def _create(self, client: KubernetesClient) -> LeaseAnswer:
        lease = {
            "apiVersion": LEASE.group_version,
            "kind": LEASE.name,
            "metadata": {"name": LEASE_NAME, "namespace": LEASE_NAMESPACE},
            "spec": {"acquireTime": rfc3339_micro(time.time()), "leaseTransitions": 0, **self._held()},
        }
        outcome = client.send("POST", LEASE.path(LEASE_NAMESPACE), lease)
        if outcome.kind is OutcomeKind.GONE:  # a cluster without kube-system
            client.send("POST", NAMESPACE.path(), {"metadata": {"name": LEASE_NAMESPACE}})
            outcome = client.send("POST", LEASE.path(LEASE_NAMESPACE), lease)
        return self._answer(outcome, "")

    def _answer(self, outcome: Outcome, holder: str) -> LeaseAnswer:
        if outcome.done and outcome.body is not None:
            self._newest = int(outcome.body["metadata"]["resourceVersion"])
        other = "" if holder == self._installation else holder
        return LeaseAnswer(outcome.done, self._installation if outcome.done else other, outcome)

    def _held(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._installation,
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "renewTime": rfc3339_micro(time.time()),
        }


_leases: dict[tuple[int, str], InstallationLease] = {}


def lease_of(cluster_id: int, api_url: str) -> InstallationLease:
    """One for each process: whether another's Lease still changes is known to who has looked before."""
    return _leases.setdefault((cluster_id, api_url), InstallationLease())
