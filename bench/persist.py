"""A9: what a session decided, written to a real PostgreSQL and committed, then marked as done."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path


@cache
def database() -> None:
    """Servers of the benchmark's own with durable commits, and Django on them."""
    folder = Path(tempfile.mkdtemp(prefix="tidesched-bench-"))
    folder.chmod(0o711)
    from cryptography.fernet import Fernet

    from tests.disposable_servers import DisposableServers

    servers = DisposableServers(folder)
    servers.start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(servers.stop)
    os.environ |= {
        "DATA_DIR": str(folder),
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "TIDESCHED_KEYS": Fernet.generate_key().decode(),
        "DJANGO_SETTINGS_MODULE": "tidesched_web.settings",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def persist(binds: int) -> Callable[[], Callable[[], float]]:
    """A session with ``binds`` decisions in gangs of eight."""

    def prepare() -> Callable[[], float]:
        database()
        from django.db import transaction
        from django.utils import timezone

        from tidesched_web.clusters.models import Cluster
        from tidesched_web.engine.model import Memory
        from tidesched_web.scheduling.models import Decision, DecisionKind, DecisionState, Session
        from tidesched_web.scheduling.pipeline import decisions, memory
        from tidesched_web.scheduling.pipeline.decisions import Draft, Outcome

        cluster = Cluster.objects.create(name=f"bench {binds}", slug=f"bench-{binds}", api_url="https://10.0.0.1")
        numbers = iter(range(1, 1_000_000))

        def drafts() -> list[Draft]:
            return [
                Draft(
                    kind=DecisionKind.BIND,
                    gang=f"bench/gang-{number // 8}",
                    target=f"bench/gang-{number // 8}-{number % 8}",
                    uid=f"uid-{number}",
                    node=f"node-{number % 1000}",
                    detail={"card": "NVIDIA-H200", "card_indices": [number % 8], "required": 8},
                )
                for number in range(binds)
            ]

        def measure() -> float:
            rows, now = drafts(), timezone.now()
            start = time.perf_counter()
            with transaction.atomic():
                session = Session.objects.create(
                    cluster=cluster, number=next(numbers), epoch=1, state="decided", mode="schedule", now=now,
                    started_at=now, engine_version="bench", result_hash="",
                )  # fmt: skip
                memory.store(cluster.pk, session.pk, Memory())
                decisions.insert(rows, cluster_id=cluster.pk, session_id=session.pk, epoch=1, at=now)
            taken = time.perf_counter() - start
            decisions.mark(rows, [Outcome(row.id, DecisionState.DONE) for row in rows])
            assert Decision.objects.filter(session=session, state="done").count() == binds
            return taken

        return measure

    return prepare
