import logging
import threading
import time
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.utils import timezone

from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.connection_selectors import same_server
from tidesched_web.clusters.kubernetes import collector
from tidesched_web.clusters.kubernetes.cache import ClusterCache, Tap, Trouble
from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.connection import BadConnection
from tidesched_web.clusters.kubernetes.installation_lease import LEASE_NAME, LEASE_NAMESPACE
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.kubernetes.probe import server_uid as uid_of_server
from tidesched_web.clusters.kubernetes.refusals import Refusal
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common import alive
from tidesched_web.common.failures import described
from tidesched_web.common.progress import progress
from tidesched_web.engine.model import BadInput, BrokenInvariant
from tidesched_web.scheduling.holds import FOREIGN_CODE
from tidesched_web.scheduling.models import AlertSeverity, ReachState
from tidesched_web.scheduling.pipeline import alerts, lease, requests, session, timing
from tidesched_web.scheduling.pipeline.context import ClusterContext, NoPolicy
from tidesched_web.scheduling.pipeline.drift_watch import DriftWatch
from tidesched_web.scheduling.pipeline.lease import Lease, LeaseLost
from tidesched_web.scheduling.pipeline.observed import Observer
from tidesched_web.scheduling.pipeline.reach import Reach, ReachWatch, reach_of
from tidesched_web.scheduling.pipeline.sending import WentBack
from tidesched_web.scheduling.pipeline.session import StalePicture
from tidesched_web.scheduling.pipeline.settling import CannotSettle

EVERY_SECONDS = 1.0


def is_mode(cluster_id: int, mode: ClusterMode) -> bool:
    return Cluster.objects.filter(pk=cluster_id, mode=mode).exists()


class KindsMissing(RuntimeError):
    """Volcano's kinds went from the cluster: a session would take every gang for lost."""


class Watching:
    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.drift = DriftWatch()
        self.observer = Observer(cluster_id)
        self.taps: tuple[Tap, ...] = (self.drift, self.observer.sightings)
        self._reach_watch = ReachWatch(cluster_id)
        self._looked_at = float("-inf")

    def look(self, cache: ClusterCache, silence: Trouble | None = None) -> None:
        """``silence``: a request of the shard's own that the server does not answer."""
        if time.monotonic() - self._looked_at < EVERY_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            self._look(cache, silence)
        except DatabaseError as error:
            _log.warning("cluster %s: not watched: %s", self.cluster_id, str(error).strip().split("\n")[0])
            connection.close()
        except Exception:  # noqa: BLE001 - a bug; sessions go on without it
            _log.exception("watching cluster %s failed", self.cluster_id)

    def cannot_connect(self, why: str) -> None:
        self._reach_watch.note(Reach(ReachState.REFUSED, why[:500]))

    def require_kinds(self, cache: ClusterCache) -> None:
        now = reach_of(cache.troubles())
        if now.state is ReachState.KINDS_MISSING and is_mode(self.cluster_id, ClusterMode.SCHEDULE):
            raise KindsMissing(f"the API server does not know {' and '.join(now.kinds)}")

    def _look(self, cache: ClusterCache, silence: Trouble | None) -> None:
        troubles = [*cache.troubles(), *([silence] if silence is not None else [])]
        self._reach_watch.look(troubles)
        if cache.synced and not any(one.absent and one.kind == QUEUE.name for one in troubles):
            self.drift.look(Cluster.objects.get(pk=self.cluster_id))


_log = logging.getLogger(__name__)

# So long the first sessions wait for what a cluster that went back differs in.
COMPARE_SECONDS = 60.0
# So often it is looked whether the cluster is reached in another way by now: no session has to succeed for that.
FOLLOW_SECONDS = 2.0
_CONNECT_AGAIN_SECONDS = 10.0
FOREIGN_KEY = "foreign_scheduler"
# What may go wrong without being a bug: said in one line, tried again later.
_EXPECTED = (
    DatabaseError, ApiFailure, Unreachable, CannotSettle, StalePicture, KindsMissing, NoPolicy, BadInput,
    BrokenInvariant,
)  # fmt: skip


def _connection_of(cluster: Cluster) -> tuple[object, ...]:
    secret = bytes(cluster.credentials) if cluster.credentials else b""
    way = (cluster.connection_kind, cluster.api_url, cluster.tls_server_name, cluster.ca_certificate)
    return *way, secret, cluster.disconnected_at, tuple(cluster.schedulers)


# One or two failures heal by themselves (a server restarts); from here on a person should know.
_FAILURES_BEFORE_ALERT = 3


def _refused(verb: str, resource: str, of: list[Refusal]) -> dict[str, Any]:
    said, name = of[0].said[:500], of[0].write.name
    return {
        "severity": AlertSeverity.WARNING,
        "code": "write_refused",
        "message": f"{verb} {resource} {name}: {said}",
        "numbers": {"verb": verb, "resource": resource, "object": name, "objects": len(of), "said": said},
    }


# A kubelet that is busy takes some seconds more than a pod's grace.
STAYS_SECONDS = 30.0


def _pod_stays(staying: dict[str, list[str]]) -> dict[str, Any]:
    name, held = next(iter(staying.items()))
    return {
        "severity": AlertSeverity.WARNING,
        "code": "pod_stays",
        "message": f"{name} was to end and is still there; finalizers: {', '.join(held) or 'none'}",
        "numbers": {"object": name, "objects": len(staying), "finalizers": ", ".join(held) or "–"},
    }


class ClusterShard(threading.Thread):
    """``busy`` is true while a session is under way: past its lease the process may then not live on."""

    def __init__(self, held: Lease) -> None:
        super().__init__(name=f"cluster-{held.cluster_id}", daemon=True)
        self.lease = held
        self.busy = False
        self._wake = threading.Event()
        self._stop_asked = threading.Event()
        self._watch_woke = False
        self._context: ClusterContext | None = None
        self._lease_object_at = float("-inf")
        self._silence: Trouble | None = None
        self._compares_until = float("-inf")
        self._followed_at = time.monotonic()
        self._connection: tuple[object, ...] = ()
        self._refused = True  # alerts of a holder before
        self._watching = Watching(self.cluster_id)

    @property
    def cluster_id(self) -> int:
        return self.lease.cluster_id

    def wake(self) -> None:
        self._wake.set()

    def wake_by_watch(self) -> None:
        self._watch_woke = True
        self._wake.set()

    def stop(self) -> None:
        self._stop_asked.set()
        self._wake.set()

    def run(self) -> None:
        with progress.activity(self.lease.activity, "beginning"):
            self._run()

    def _run(self) -> None:
        try:
            went_back = True
            while went_back and not self._ends():
                went_back = self._follow_cluster()
        finally:
            self._release()

    def _follow_cluster(self) -> bool:
        """Until the end, or until the cluster went back: True, and all is read and compared anew."""
        cache: ClusterCache | None = None
        client: KubernetesClient | None = None
        try:
            cluster = Cluster.objects.get(pk=self.cluster_id)
            self._connection = _connection_of(cluster)
            client = KubernetesClient.for_cluster(cluster)
            cache = ClusterCache(
                client, schedulers=cluster.schedulers, wake=self.wake_by_watch, taps=self._watching.taps
            )
            cache.start()
            alive.watched[self.cluster_id] = cache.ages
            self._context = ClusterContext(cluster, self.lease, client, cache, observer=self._watching.observer)
            if self._wait_until_ready(cache):
                self._work()
        except LeaseLost as error:
            _log.warning("%s", error)
        except WentBack as error:
            self._say(error)
            self._begin_anew(str(error), error.server_uid)
            return True
        except BadConnection as error:
            # Of the own pod where there is none: nothing to watch with, and nothing that trying at once would mend.
            self._say(error)
            self._watching.cannot_connect(str(error))
            self._stop_asked.wait(_CONNECT_AGAIN_SECONDS)
        except Exception:  # noqa: BLE001 - the thread must not vanish silently
            _log.exception("the session thread of cluster %s ended", self.cluster_id)
        finally:
            self.busy = False
            alive.watched.pop(self.cluster_id, None)
            if cache is not None:
                cache.stop()
            if client is not None:
                client.close()
        return False

    # -- steps -------------------------------------------------------------------------------------------------

    def _wait_until_ready(self, cache: ClusterCache) -> bool:
        loaded = False
        while not self._ends():
            progress.step("waiting for the first picture of the cluster")
            self._watching.look(cache)
            try:
                self._follow_connection()
                if not loaded:
                    assert self._context is not None
                    self._context.load()
                    loaded = True
                if not cache.wait_synced(1.0):
                    continue
                if self._watching.drift.compared or time.monotonic() > self._compares_until:
                    collector.pass_over()
                    return True
                self._stop_asked.wait(0.2)
            except DatabaseError as error:
                self._say(error)
                self._wake.wait(1.0)
        return False

    def _work(self) -> None:
        assert self._context is not None
        last_start, period = float("-inf"), 1.0
        while not self._ends():
            progress.step("between sessions")
            self._watching.look(self._context.cache, self._silence)
            try:
                self._follow_connection()
                self._hold_lease_object(self._context)
                trigger = self._due(last_start, period)
                if trigger is None:
                    continue
                last_start, started_at = time.monotonic(), timezone.now()
                period = self._one_session(trigger)
                requests.done(self.cluster_id, started_at=started_at, period=period)
            except (LeaseLost, WentBack):
                raise
            except _EXPECTED as error:
                self._fail(error, period)
            except Exception as error:  # noqa: BLE001 - a bug; said with its trace, tried again later
                _log.exception("a session of cluster %s failed", self.cluster_id)
                self._fail(error, period)
            finally:
                self.busy = False

    def _due(self, last_start: float, period: float) -> str | None:
        """A watch may bring a session forward to half the period, never closer."""
        seconds, asked_by = requests.seconds_until_due(self.cluster_id)
        if seconds <= 0:
            self._watch_woke = False
            return asked_by or "period"
        if self._watch_woke:
            early = last_start + period / 2 - time.monotonic()
            if early <= 0:
                self._watch_woke = False
                return "watch"
            seconds = min(seconds, early)
        collector.quiet_moments.quiet(seconds)
        self._wake.wait(min(seconds, timing.SWEEP_SECONDS))
        self._wake.clear()
        return None

    def _begin_anew(self, why: str, server_uid: str) -> None:
        """What the cluster lost is compared with what was approved before a session decides on it."""
        self._watching, self._compares_until = Watching(self.cluster_id), time.monotonic() + COMPARE_SECONDS
        assert self._context is not None
        self._context.installation_lease.begin_anew()
        try:
            server_uid = server_uid or uid_of_server(self._context.client)
        except Unreachable:
            server_uid = ""  # seen once more with the next look
        try:
            with transaction.atomic():
                alerts.raise_alert(
                    cluster_id=self.cluster_id,
                    key="went_back",
                    severity=AlertSeverity.CRITICAL,
                    code="went_back",
                    message=f"The cluster is not the one that it was: {why}.",
                    numbers={"said": why},
                )
                if server_uid:
                    clusters.note_server(cluster=Cluster.objects.get(pk=self.cluster_id), server_uid=server_uid)
        except DatabaseError as error:
            self._say(error)
        self._stop_asked.wait(EVERY_SECONDS)

    def _one_session(self, trigger: str) -> float:
        assert self._context is not None
        self._watching.require_kinds(self._context.cache)
        self._hold_lease_object(self._context)
        if why := self._context.cache.went_back() or self._context.installation_lease.went_back:
            raise WentBack(why)
        self.busy = True
        try:
            done = session.run(self._context, trigger=trigger)
        finally:
            self._tell_refusals(self._context)
        alerts.resolve(cluster_id=self.cluster_id, key="session_failed", by="scheduler")
        return float(done.cluster.session_period_seconds)

    def _follow_connection(self) -> None:
        """End where the cluster got other credentials or was cut off, so that the next holder begins with these."""
        if time.monotonic() - self._followed_at < FOLLOW_SECONDS:
            return
        self._followed_at = time.monotonic()
        cluster = Cluster.objects.filter(pk=self.cluster_id).first()
        if cluster is None or _connection_of(cluster) != self._connection:
            _log.info("cluster %s is reached in another way now; starting anew", self.cluster_id)
            self.stop()

    def _hold_lease_object(self, context: ClusterContext) -> None:
        """Keep the cluster's own Lease: another installation that holds it schedules, and this one only shows."""
        # Who waits for it looks more often: it has to see soon that the holder's renewals have ended.
        if time.monotonic() - self._lease_object_at < timing.LEASE_SECONDS / (10 if context.foreign_holder else 3):
            return
        try:
            twin = self._recognize(context.client)
        except Unreachable as error:
            self._note_silence(str(error))
            raise
        if is_mode(self.cluster_id, ClusterMode.OBSERVE):  # writes nothing, this object neither
            self._lease_object_at = time.monotonic()
            self._nobody_else(context)
            return
        answer = context.installation_lease.hold(context.client)
        away = answer.outcome.kind is OutcomeKind.UNREACHABLE
        if not answer.held and not answer.holder and (away or is_mode(self.cluster_id, ClusterMode.SCHEDULE)):
            # Not readable is not another's: an API server that has just started knows no roles for a moment.
            said = f"the Lease {LEASE_NAMESPACE}/{LEASE_NAME} cannot be kept: {answer.why}"
            if away:
                self._note_silence(answer.why)
            raise Unreachable(said, maybe_done=answer.outcome.maybe_done)
        self._lease_object_at, self._silence = time.monotonic(), None
        holder = answer.holder if not answer.held else twin
        if not holder:
            self._nobody_else(context)
            return
        context.foreign_holder = holder
        alerts.raise_alert(
            cluster_id=self.cluster_id,
            key=FOREIGN_KEY,
            severity=AlertSeverity.CRITICAL,
            code=FOREIGN_CODE,
            message=f"Nothing is sent: the cluster's Lease is held by {holder}.",
            numbers={"holder": context.foreign_holder},
        )

    def _note_silence(self, said: str) -> None:
        """The watches of a server that hangs are silent for long before they break."""
        self._silence = Trouble("Lease", said, 0, min(time.monotonic() - self._lease_object_at, timing.LEASE_SECONDS))

    def _nobody_else(self, context: ClusterContext) -> None:
        if context.foreign_holder != "":
            alerts.resolve(cluster_id=self.cluster_id, key=FOREIGN_KEY, by="scheduler")
        context.foreign_holder = ""

    def _recognize(self, client: KubernetesClient) -> str:
        """The name under which this server is connected already, if it is. Raises WentBack: it is another server."""
        uid = uid_of_server(client)
        cluster = Cluster.objects.get(pk=self.cluster_id)
        if uid and uid != cluster.server_uid:
            if cluster.server_uid:
                raise WentBack(f"its kube-system was {cluster.server_uid} and is {uid}", uid)
            clusters.note_server(cluster=cluster, server_uid=uid)
        twin = same_server(uid, but=self.cluster_id)
        return f"cluster {twin.name}" if twin is not None and twin.pk < self.cluster_id else ""

    def _tell_refusals(self, context: ClusterContext) -> None:
        refused = context.refusals.repeated().items()
        wanted = {f"write_refused:{verb}:{what}": _refused(verb, what, of) for (verb, what), of in refused}
        if staying := context.cache.staying(STAYS_SECONDS):
            wanted["write_refused:end"] = _pod_stays(staying)
        if wanted or self._refused:
            alerts.keep_open(cluster_id=self.cluster_id, prefix="write_refused:", wanted=wanted)
        self._refused = bool(wanted)

    def _fail(self, error: Exception, period: float) -> None:
        self._say(error)
        try:
            said = described(error)
            seconds, failures = requests.failed(self.cluster_id, at=timezone.now(), period=period, error=said)
            if failures >= _FAILURES_BEFORE_ALERT:
                alerts.raise_alert(
                    cluster_id=self.cluster_id,
                    key="session_failed",
                    severity=AlertSeverity.CRITICAL,
                    code="no_policy" if isinstance(error, NoPolicy) else "session_failed",
                    message=f"No session for {failures} attempts in a row: {said}",
                    numbers={"failures": failures, "said": said},
                )
        except DatabaseError as second:
            self._say(second)
            seconds = 1.0
        self._wake.clear()
        self._wake.wait(min(seconds, timing.SWEEP_SECONDS))

    def _say(self, error: Exception) -> None:
        _log.warning(
            "cluster %s: no session: %s: %s", self.cluster_id, type(error).__name__, str(error).strip().split("\n")[0]
        )
        if isinstance(error, DatabaseError):
            connection.close()

    def _ends(self) -> bool:
        return self._stop_asked.is_set() or self.lease.lost

    def _release(self) -> None:
        try:
            if not self.lease.lost:
                lease.release(self.lease)
        except DatabaseError as error:
            self._say(error)
        finally:
            self.lease.lose()
            connection.close()
