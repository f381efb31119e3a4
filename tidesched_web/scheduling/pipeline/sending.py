"""The lease is checked before each request. A write without an answer stays *sending*: the next session asks."""

import datetime as dt
import logging
import threading
from collections.abc import Callable, Sequence

import msgspec
from django.db import transaction

from tidesched_web.clusters.kubernetes.client import ApiFailure, Unreachable
from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.common.progress import progress
from tidesched_web.scheduling.models import DecisionKind, DecisionState
from tidesched_web.scheduling.pipeline import decisions, failpoints, guards
from tidesched_web.scheduling.pipeline.assumed import Assumed
from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome
from tidesched_web.scheduling.pipeline.lease import Lease, LeaseLost, hold_row

BATCH = 64
ASIDE_SECONDS = 1.0

_log = logging.getLogger(__name__)


class WentBack(RuntimeError):
    """The cluster is in an older state than before, or another one: what was read of it is worth nothing."""

    def __init__(self, why: str, server_uid: str = "") -> None:
        super().__init__(why)
        self.server_uid = server_uid


class Aside:
    """What is only shown is sent beside the sessions: a server that is slow to take it costs one of them a second."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def run(self, send: Callable[[], None]) -> None:
        """Nothing while the last one is still under way."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._send, args=(send,), name="aside", daemon=True)
        self._thread.start()
        self._thread.join(ASIDE_SECONDS)

    def _send(self, send: Callable[[], None]) -> None:
        try:
            send()
        except (LeaseLost, WentBack, ApiFailure, Unreachable) as error:
            _log.info("%s", error)
        except Exception:  # noqa: BLE001 - a bug; sessions go on without it
            _log.exception("what is only shown could not be sent")


class Paused(RuntimeError):
    """The pause switch was pressed while a session was sending."""


class Route(msgspec.Struct, kw_only=True):
    cluster_id: int
    session_id: int
    epoch: int
    now: dt.datetime
    lease: Lease
    writes: ClusterWrites
    assumed: Assumed
    went_back: Callable[[], str]
    away: Answer | None = None

    def require(self) -> None:
        self.lease.require()
        if guards.paused(self.cluster_id):
            raise Paused

    def begin(self, drafts: Sequence[Draft]) -> None:
        self.require()
        progress.step()
        with transaction.atomic():
            hold_row(self.lease)
            decisions.take_over(drafts, epoch=self.epoch)
        failpoints.reach("send.before_batch", acts=_acts(drafts))

    def send(self, calls: Sequence[Callable[[], Answer]], *, between: str = "") -> list[Answer]:
        """Make the calls in parallel, each one only while the lease lasts; ``between`` is a failpoint after each."""

        def guarded(call: Callable[[], Answer]) -> Callable[[], Answer]:
            def checked() -> Answer:
                if why := self.went_back():  # it may wait for an answer, so the lease is asked after it
                    raise WentBack(why)
                self.lease.require()
                progress.touch(self.lease.activity)
                answer = call()
                if between:
                    failpoints.reach(between)
                return answer

            return checked

        answers = run_all([guarded(call) for call in calls])
        self.away = self.away or next((answer for answer in answers if answer.away), None)
        return answers

    def require_server(self) -> None:
        if self.away is not None:
            raise Unreachable(f"{self.away.reason}: {self.away.message}", maybe_done=True)

    def finish(self, drafts: Sequence[Draft], outcomes: Sequence[Outcome]) -> None:
        done = {outcome.id for outcome in outcomes if outcome.state is DecisionState.DONE}
        for draft in drafts:
            if draft.id in done:
                self.assumed.add(draft, at=self.now.timestamp())
        with transaction.atomic():
            hold_row(self.lease)
            decisions.mark(drafts, outcomes)
        failpoints.reach("send.marked", acts=_acts(drafts))
        self.require_server()


def _acts(drafts: Sequence[Draft]) -> bool:
    return any(draft.kind in (DecisionKind.BIND, DecisionKind.EVICT) for draft in drafts)


def outcome_of(draft: Draft, answer: Answer) -> Outcome | None:
    """What an answer says of a decision; None = unknown, it stays open."""
    text = f"{answer.reason}: {answer.message}" if answer.message else answer.reason
    if answer.kind is OutcomeKind.DONE:
        return Outcome(draft.id, DecisionState.DONE, answer.reason)
    if answer.kind is OutcomeKind.GONE:
        return Outcome(draft.id, DecisionState.SUPERSEDED, "The object is gone.")
    if answer.kind is OutcomeKind.UNREACHABLE:
        return None
    return Outcome(draft.id, DecisionState.FAILED, text)


def split_name(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def supersede(drafts: Sequence[Draft], text: str) -> None:
    with transaction.atomic():
        decisions.mark(drafts, [Outcome(draft.id, DecisionState.SUPERSEDED, text) for draft in drafts])
