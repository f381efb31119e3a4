"""Each kind that a session reads, refused or not answered, in the middle of a living installation.

The cells come from the table of RBAC (`clusters/kubernetes/verbs.py`): lists and watches of each kind. In each a gang
arrives while the fault stands. `make proof-refusals` prints the table of `docs/kubernetes.md`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db import connections

from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.living import Living
from tests.kube.real_server import RealServer
from tests.waiting import until
from tidesched_web.clusters.kubernetes.paths import WATCHED, Kind
from tidesched_web.clusters.kubernetes.verbs import NEEDS

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1200)]

FAULTS = {
    "refused (403)": Fault(code=403, reason="Forbidden"),
    "hanging": Fault(delay=6.0, code=504, reason="Timeout"),
}
QUERIES = {"list": "limit", "watch": "watch"}


def kinds(verb: str) -> list[Kind]:
    needed = {(need.group, need.resource) for need in NEEDS if verb in need.verbs}
    return [kind for kind in WATCHED if (kind.group_version.rpartition("/")[0], kind.plural) in needed]


@pytest.fixture
def living(server: RealServer, proxy: FaultProxy, transactional_db: None) -> Iterator[Living]:
    made = Living(server, proxy, nodes=3)
    yield made
    made.close()
    connections.close_all()


@pytest.mark.parametrize("what", FAULTS)
@pytest.mark.parametrize("verb", QUERIES)
def test_what_cannot_be_read_is_told_and_heals(living: Living, verb: str, what: str) -> None:
    fault = FAULTS[what]
    for kind in kinds(verb):
        spoilt = living.proxy.spoil(replace(fault, method="GET", part=f"{kind.path()}?{QUERIES[verb]}"))
        living.proxy.cut(only_watches=True)
        began = time.monotonic()
        gang = f"of-{kind.id.lower()}"
        living.train(gang, 2)
        until(lambda spoilt=spoilt: spoilt.seen > 0, story=living.story)
        told, seconds = "spared", 0.0
        if not (kind.spare and fault.code == 403):
            told = until(lambda kind=kind: _told(living, kind), story=living.story)
            seconds = time.monotonic() - began
        starts = "starts" if living.running(gang) == 2 else "waits"
        living.proxy.heal()
        healed = time.monotonic()
        until(lambda gang=gang: living.running(gang) == 2 and not living.alerts(), 90, story=living.story)
        row = (f"{verb} {kind.plural}", what, told, f"{seconds:.0f}", starts, f"{time.monotonic() - healed:.0f}")
        print(f"| {' | '.join(row)} |", flush=True)
        assert living.bound_twice() == []
        assert living.cached() == living.listed()
        living.end(gang)


def _told(living: Living, kind: Kind) -> str:
    return next((code for code, text in living.alerts().items() if kind.id in text), "")
