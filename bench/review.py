"""W-review: the impact of a quota edit on a large cluster, asked for as the review page and the REST API ask.

A cluster that runs, whose sessions go on while people ask: every request finds another latest session. A process of the
queue ``what-if`` (Celery, prefork) answers; it follows when the installation's clock says so. The time is that
of ``GET /quota-changes/{id}/plan/``: the plan, the question written down, the message, the session in the other
process, the answer read back and cut to the reader's sight.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import msgspec

from bench.clock import clock, is_processor_time
from bench.persist import database
from bench.snapshots import CARDS, CARDS_A_NODE, QUEUES, RESOURCE, Size
from bench.steady import Running
from scheduler_core.simulator.manifests import queue_manifest

# So many questions are asked while one session follows the other.
ASKED_A_SESSION = 3
# Gangs that end and gangs that come between two sessions: two of each queue.
MOVES = 40
# Gangs that wait at first: some of each queue, half of them for cards.
BACKLOG = 240
_worker: list[subprocess.Popen[bytes]] = []


def review(size: Size) -> Callable[[], Callable[[], float]]:
    """One queue's quota is raised, for which gangs wait."""
    return partial(_prepare, size)


class Recorded:
    """Sessions of a running cluster and their inputs in PostgreSQL, as the pipeline leaves them."""

    def __init__(self, size: Size) -> None:
        from django.test import Client

        from tidesched_web.accounts.models import PlatformRole, User
        from tidesched_web.clusters import services as clusters
        from tidesched_web.scheduling.pipeline.inputs import InputWriter

        self.running = Running(size)
        self.cluster = clusters.create(name=f"review {size.name}", api_url="https://10.0.0.1", actor="bench")
        self.client = Client(headers={"Host": "127.0.0.1"})
        self.client.force_login(User.objects.get_or_create(username="bench", platform_role=PlatformRole.ADMIN)[0])
        policy = clusters.set_policy(cluster=self.cluster, text=_policy(), actor="bench", released=True)
        self.policy, self.writer, self.number = policy, InputWriter(cluster_id=self.cluster.pk), 0
        self.quota = size.nodes * CARDS_A_NODE // len(CARDS) // QUEUES
        self._intent(size)
        first = next(queue for queue in self.running.builder.build().queues if queue.name == "queue-00")
        self.running.builder.upsert(queue_manifest(msgspec.structs.replace(first, card_quota={})))
        self.running.arrive(BACKLOG)

    def _intent(self, size: Size) -> None:
        """The cluster's queues as TideSched has them; the first one may use no card."""
        from tests import quota_writes
        from tidesched_web.clusters import services as clusters

        line = quota_writes.ensure_business_line(tenant=None, slug="bench", actor="bench")
        for card in CARDS:
            clusters.ensure_card_type(cluster=self.cluster, name=card, actor="bench", resource=RESOURCE)
        self.cluster.card_types.update(hardware=size.nodes * CARDS_A_NODE // len(CARDS))
        for number in range(QUEUES):
            quota_writes.create_queue(
                cluster=self.cluster, name=f"queue-{number:02}", service_type="training", business_line=line,
                card_quota={} if number == 0 else dict.fromkeys(CARDS, self.quota), actor="bench",
            )  # fmt: skip

    def session(self) -> None:
        """Some gangs end, others come; one queue may use no card, so that its gangs gather."""
        import datetime as dt

        from django.db import transaction
        from django.utils import timezone

        from tidesched_web.scheduling.models import Session

        running = self.running
        running.carry_out()
        running.end(MOVES)
        running.arrive(MOVES)
        memory = running.memory
        snapshot = running.decide()
        self.number += 1
        with transaction.atomic():
            session = Session.objects.create(
                cluster=self.cluster, number=self.number, epoch=1, state="done", mode="schedule", policy=self.policy,
                now=dt.datetime.fromtimestamp(running.now, dt.UTC), started_at=timezone.now(),
                engine_version="bench", result_hash="0" * 64,
            )  # fmt: skip
            self.writer.write(session.pk, snapshot, memory)

    def draft(self) -> str:
        """The address of a change that gives the queue that may use nothing its share."""
        made = self.client.post(
            "/api/v1/quota-changes/",
            {
                "cluster": self.cluster.slug,
                "edits": {"queue/queue-00": {"card_quota": dict.fromkeys(CARDS, self.quota)}},
            },
            content_type="application/json",
        )
        assert made.status_code == 201, made.content
        return str(made.json()["url"])


def _prepare(size: Size) -> Callable[[], float]:
    database()
    from tidesched_web.changes import impact
    from tidesched_web.scheduling.pictures import FOLLOW_SECONDS

    recorded = Recorded(size)
    recorded.session()
    _start_worker()
    address, asked, followed_at = f"{recorded.draft()}plan/", 0, time.monotonic()
    impact.warm(recorded.cluster.pk)
    deadline = time.monotonic() + 600
    while "unavailable" in (told := recorded.client.get(address).json()["impact"]):
        assert time.monotonic() < deadline, f"the process of the queue what-if does not answer: {told}"
        time.sleep(1)

    def measure() -> float:
        nonlocal asked, followed_at
        if asked % ASKED_A_SESSION == 0:
            recorded.session()
        if time.monotonic() - followed_at > FOLLOW_SECONDS:
            _follow()
            followed_at = time.monotonic()
            time.sleep(0.5)  # the questions of people do not come just then
        asked += 1
        start = clock()
        answer = recorded.client.get(address)
        taken = clock() - start
        told = answer.json()["impact"]
        assert any(told.get("counts", {}).get(name) for name in ("gangs_run", "gangs_promised", "gangs_admitted")), told
        if is_processor_time():
            taken += told["elapsed_ms"]["processor"] / 1000
        return taken

    return measure


def _policy() -> str:
    from tidesched_web.engine.demo import FOUNDING_POLICY

    return FOUNDING_POLICY


def _follow() -> None:
    from tidesched_web.celery import app
    from tidesched_web.changes.impact import FOLLOW_TASK

    app.send_task(FOLLOW_TASK, queue="what-if")


def _start_worker() -> None:
    """The process of the queue what-if; one for all sizes."""
    from tidesched_web.common import alive

    if _worker:
        return
    command = [sys.executable, "-m", "celery", "--quiet", "--skip-checks", "--app", "tidesched_web.celery", "worker"]
    command += ["--queues", "what-if", "--hostname", "what-if@%h", "--pool", "prefork", "--concurrency", "1"]
    command += ["--prefetch-multiplier", "1", "--without-gossip", "--without-mingle"]
    environment = os.environ | {"TIDESCHED_ROLE": "what-if"}
    _worker.append(subprocess.Popen(command, env=environment, start_new_session=True))
    # What it does for no reader any more need not be waited for.
    atexit.register(os.killpg, _worker[0].pid, signal.SIGKILL)
    deadline = time.monotonic() + 120
    while "what-if" in alive.silent_roles():
        assert time.monotonic() < deadline, "the process of the queue what-if does not start"
        time.sleep(0.2)
