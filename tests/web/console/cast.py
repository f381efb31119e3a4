"""Who and what the tests of the console play with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from django.contrib.auth.hashers import make_password

from tests.passwords import PASSWORD
from tidesched_web.accounts.models import PlatformRole, User
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.quota.models import Queue, QuotaTree
from tidesched_web.scheduling.models import (
    Reclaim,
    Session,
)
from tidesched_web.workloads.models import Gang

H200, A100, L40S, RTX = "NVIDIA-H200", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S", "NVIDIA-GeForce-RTX-4090"
MIG, MPS = "NVIDIA-H200/mig-1g.18gb-mixed", "NVIDIA-L40S/mps-24g*1/2"
HARDWARE = {H200: (6, 8), A100: (8, 8), L40S: (10, 4), RTX: (6, 4)}
TENANTS = [
    ("search", "Search"),
    ("voice", "Voice"),
    ("maps", "Maps"),
    ("shop", "Shop"),
    ("vision", "Vision"),
    ("research", "Research"),
]


@dataclass
class World:
    """What the tests ask for."""

    cluster: Cluster
    admin: User
    auditor: User
    member: User
    stranger: User
    newcomer: User
    queues: dict[str, Queue] = field(default_factory=dict)
    gangs: dict[str, Gang] = field(default_factory=dict)
    reclaims: list[Reclaim] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)


def people() -> tuple[User, User, User, User, User]:
    """Admin, auditor, a member of Search, a member of Research only, and one who belongs nowhere."""

    def make(username: str, **more: str) -> User:
        return User.objects.create(username=username, password=_hashed(), **more)

    return (
        make("admin", platform_role=PlatformRole.ADMIN),
        make("auditor", platform_role=PlatformRole.AUDITOR),
        make("mei"),
        make("stranger"),
        make("newcomer"),
    )


@cache
def _hashed() -> str:
    """Hashing is slow on purpose; once is enough for all tests."""
    return make_password(PASSWORD)


def empty_cluster(name: str = "demo", **more: object) -> Cluster:
    """A cluster that no session has looked at."""
    cluster = Cluster.objects.create(
        name=name, slug=name, mode=ClusterMode.SCHEDULE, simulated=True, api_url="http://127.0.0.1:1", **more
    )
    QuotaTree.objects.create(cluster=cluster)
    return cluster
