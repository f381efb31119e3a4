"""Queries of each endpoint, committed in query_budgets.json: at most six, and the same for one row and for many.

`UPDATE_BUDGETS=1` writes the file anew; a figure that grows has to be seen in a diff.
"""

import json
import os
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import quota_writes
from tests.api.addresses import OPERATIONS, address
from tests.api.cast import ApiClient
from tests.matrix.expectations import EXPECTED
from tests.matrix.stage import PEOPLE
from tidesched_web.accounts.models import ApiToken
from tidesched_web.scheduling.models import Reclaim, ReclaimVictim
from tidesched_web.workloads.models import Gang

FILE = Path(__file__).parent / "query_budgets.json"
LIMIT = 6
# They read the whole tree, in as many queries whatever its size.
WORKED_OUT = {"clusters-tree": 15, "quota-changes-plan": 20}
# What a member may not read at all has no budget.
OWNER = PEOPLE.index("tenant-admin")
READS = sorted(
    name
    for name, method in OPERATIONS
    if method == "get" and not name.startswith("schema") and EXPECTED[f"api:{name}", "get"][OWNER] == "200"
)
CALLERS = ("session of a member", "token of a member", "session of an admin")


def clients(world):
    text = world.token("owner", "admin", "audit:read")
    ApiClient(token=text).read("tenants/")  # its time of use is written now, and then for a minute not again
    return dict(zip(CALLERS, (world.client("owner"), ApiClient(token=text), world.client("admin")), strict=True))


def queries(client, url):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200, url
    return [
        query["sql"] for query in captured.captured_queries if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))
    ]


def measure(world):
    found = {}
    for caller, client in clients(world).items():
        for name in READS:
            url = address(world, name)
            if name == "tokens-detail":
                url = world.client("admin").read("tokens/", user="owner")["results"][0]["url"]
            found.setdefault(name, {})[caller] = len(queries(client, url))
    return found


def test_each_read_keeps_its_budget(world):
    found = measure(world)
    if os.environ.get("UPDATE_BUDGETS"):
        FILE.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    assert found == json.loads(FILE.read_text(encoding="utf-8"))
    assert {name: row for name, row in found.items() if max(row.values()) > WORKED_OUT.get(name, LIMIT)} == {}


@pytest.mark.parametrize("name", [name for name in READS if name.endswith("-list")])
def test_many_rows_cost_no_more_queries_than_two(world, name):
    client, url = world.client("admin"), address(world, name)
    few = len(queries(client, f"{url}?limit=2"))
    multiply(world)
    assert len(queries(client, f"{url}?limit=1000")) <= few


def multiply(world):
    acme, east = world.tenants["acme"], world.clusters["east"]
    for index in range(3):
        project = quota_writes.ensure_project(tenant=acme, slug=f"more-{index}", actor="tests")
        quota_writes.ensure_business_line(tenant=acme, slug=f"more-{index}", actor="tests")
        quota_writes.create_queue(
            cluster=east, name=f"more-{index}", service_type="inference", project=project, actor="tests"
        )
        world.token("teammate", "quota:read", tenant="acme")
        gang = world.gangs["web"]
        gang.pk, gang.uid = None, f"more-{index}"
        gang.save(force_insert=True)
        reclaim = world.reclaim
        reclaim.pk = None
        reclaim.save(force_insert=True)
        ReclaimVictim.objects.create(reclaim=reclaim, gang="acme/old", queue_name="acme-train")
    assert Gang.objects.count() > 5
    assert Reclaim.objects.count() == 4
    assert ApiToken.objects.count() == 3
