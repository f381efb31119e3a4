import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone
from django.utils.module_loading import import_string

from tidesched_web.common import live
from tidesched_web.common.errors import DomainError
from tidesched_web.common.failures import OUT_OF_TIME, described
from tidesched_web.common.progress import progress as moves
from tidesched_web.jobs import services, waiting
from tidesched_web.jobs.models import Job, JobState
from tidesched_web.jobs.selectors import job_by_id

_log = logging.getLogger(__name__)

# Progress is written at most so often, whatever a handler reports.
REPORT_SECONDS = 0.5


class Stopped(Exception):
    """The job was cancelled, or another attempt has it: the handler ends without a result."""


class HandedOver(Exception):
    """Others go on with the job: this attempt is over."""


class Running:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.params: dict[str, Any] = job.params
        self.checkpoint: dict[str, Any] | None = job.checkpoint
        self._reported_at = float("-inf")
        self._log: list[dict[str, Any]] = list(job.log)

    def report(self, progress: float, *, checkpoint: dict[str, Any] | None = None, now: bool = False) -> None:
        """Say how far it is (0..1), and where another attempt would go on. `Stopped`: it is not wanted any more."""
        moves.step()
        if not now and time.monotonic() - self._reported_at < REPORT_SECONDS:
            return
        self._reported_at = time.monotonic()
        values: dict[str, Any] = {"progress": max(0.0, min(1.0, progress))}
        if checkpoint is not None:
            values["checkpoint"] = checkpoint
        self._write(values)
        about = live.About("job", self.job.kind, "progress", person=self.job.owner_id or 0)
        version = f"{self.job.attempt}.{progress:.3f}"
        live.publish("jobs", self.job.pk, version, cluster_id=self.job.cluster_id, about=about)

    def say(self, text: str, **values: Any) -> None:
        self._log = [*self._log, {"at": timezone.now().isoformat(), "text": text, "values": values}]
        self._write({"log": self._log})

    def show(self, result: dict[str, Any]) -> None:
        self._write({"result": result})
        waiting.tell(self.job.pk)

    def hand_over(self, *, worker: str, checkpoint: dict[str, Any], result: dict[str, Any]) -> Exception:
        """End this attempt and let ``worker`` go on from ``checkpoint``; what is returned is to be raised."""
        done = services.hand_over(self.job, worker=worker, checkpoint=checkpoint, result=result)
        return HandedOver() if done else Stopped()

    def _write(self, values: dict[str, Any]) -> None:
        moves.step()
        if not services.carry_on(self.job, **values):
            raise Stopped


# Returns the result of the job; what it has noted by `report` is there again when it is called for another attempt.
Handler = Callable[[Running], dict[str, Any] | None]


def handler_of(kind: str) -> Handler | None:
    path = settings.JOB_HANDLERS.get(kind)
    return import_string(path) if path else None


class _Alive(threading.Thread):
    """Says that the attempt lives while its handler computes and reports nothing."""

    def __init__(self, job: Job) -> None:
        super().__init__(name=f"job-{job.pk}", daemon=True)
        self._job = job
        self._over = threading.Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def run(self) -> None:
        while not self._over.wait(services.LOST_SECONDS / 4):
            try:
                services.is_alive(self._job)
            except DatabaseError as error:
                _log.warning("job %s: no sign of life: %s", self._job.pk, str(error).strip().split("\n")[0])
            finally:
                connection.close()


def take_turn(job_id: int) -> JobState | None:
    """One at a time, and not until none is left: a process that works for jobs alone would keep all else waiting."""
    named = job_by_id(job_id)
    job = services.claim_turn(named.worker) if named is not None else None
    if named is None or job is None:
        return None
    try:
        with _Alive(job):
            return _do(job)
    finally:
        services.wake_next(job.worker)


def run(job_id: int) -> JobState | None:
    job = services.claim(job_id)
    if job is None:
        return None
    with _Alive(job):
        return _do(job)


def _do(job: Job) -> JobState | None:
    handler = handler_of(job.kind)
    try:
        if handler is None:
            raise DomainError("invalid", f"No worker of this installation does jobs of kind {job.kind!r}.")
        result = handler(Running(job))
    except HandedOver:
        return JobState.QUEUED
    except Stopped:
        return _stopped(job)
    except DomainError as error:
        services.finish(job, state=JobState.FAILED, error=error.message)
        return JobState.FAILED
    except DatabaseError:
        raise  # the row stays claimed; the sweep finds it once it is silent for long enough
    except Exception as error:  # noqa: BLE001 - a bug; the job says so and the worker lives on
        if _ran_out_of_time(error):
            return _too_long(job)
        _log.error("job %s failed", job.pk)
        services.finish(job, state=JobState.FAILED, error=described(error))
        return JobState.FAILED
    services.finish(job, state=JobState.DONE, result=result)
    return JobState.DONE


def _ran_out_of_time(error: BaseException | None) -> bool:
    """Whether the worker's limit of time ended it; a compiler that was at work may have made another error of that."""
    while error is not None:
        if isinstance(error, SoftTimeLimitExceeded):
            return True
        error = error.__cause__ or error.__context__
    return False


def _too_long(job: Job) -> JobState:
    """Once more, where it was the first attempt: what was loaded and compiled in it is there now."""
    if job.attempt == 1 and services.put_back(job):
        _log.warning("job %s: out of time, and tried once more", job.pk)
        return JobState.QUEUED
    services.finish(job, state=JobState.FAILED, error=OUT_OF_TIME)
    return JobState.FAILED


def _stopped(job: Job) -> JobState | None:
    now = job_by_id(job.pk)
    if now is not None and now.cancel_asked_at is not None and now.attempt == job.attempt:
        services.finish(job, state=JobState.CANCELLED)
        return JobState.CANCELLED
    return None
