"""`make proof-metrics`: rules, alerts and boards on the real thing, a demo and a Prometheus that scrapes it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.browser.demo import Demo, running
from tests.browser.servers import ROOT
from tests.crew.cluster import Cluster
from tests.metrics import prometheus
from tests.metrics.causes import CAUSES, Stage, set_up
from tests.metrics.prometheus import BOARDS, Prometheus
from tests.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]

# A day of the demo, ten minutes: by its end all has happened that a panel counts.
DAY_SECONDS = 900.0
ALERT_SECONDS = 300.0


def token_of(demo: Demo, *scopes: str) -> str:
    command = [sys.executable, "manage.py", "token", "create", "admin"]
    command += [word for scope in scopes for word in ("--scope", scope)]
    environment = os.environ | {"DATA_DIR": str(demo.folder)}
    for name in ("DATABASE_URL", "REDIS_URL", "TIDESCHED_EMBEDDED"):
        environment.pop(name, None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The demo, where what is stopped stays stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDESCHED_HANG_SECONDS", "3600")
        with running(tmp_path_factory.mktemp("demo")) as demo:
            bearer = {"Authorization": f"Bearer {token_of(demo, 'admin', 'quota:read', 'quota:write', 'cluster:read')}"}
            with httpx.Client(base_url=f"{demo.address}/api/v1/", headers=bearer, timeout=60) as rest:
                made = Stage(demo, Cluster(demo), rest)
                set_up(made)
                yield made


@pytest.fixture(scope="module")
def metrics(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    target = stage.demo.address.removeprefix("http://")
    token = token_of(stage.demo, "metrics:read")
    with prometheus.running(tmp_path_factory.mktemp("prometheus"), target, token) as found:
        yield found


def without_data(metrics: Prometheus) -> list[str]:
    """Each query of a panel without a figure, or whose series lack what its legend names."""
    wrong = []
    for board in BOARDS:
        for panel in json.loads(board.read_text())["panels"]:
            for target in panel["targets"]:
                series = metrics.query(re.sub(r"\$(cluster|queue|card)\b", ".*", hurry(target["expr"])))
                labels = re.findall(r"{{(\w+)}}", target["legendFormat"])
                told = [one["metric"] for one in series if one["value"][1] != "NaN"]
                if not any(one.keys() >= set(labels) for one in told):
                    wrong.append(f"{board.stem}, {panel['title']}: {target['expr']} has {series}")
    return wrong


def hurry(expression: str) -> str:
    return expression.replace("$__rate_interval", "15s")


def test_every_query_of_every_board_has_data(metrics: Prometheus) -> None:
    last: list[str] = []

    def all_have() -> bool:
        last[:] = without_data(metrics)
        return not last

    until(all_have, DAY_SECONDS, story=lambda: "\n".join(last))


def test_every_rule_is_evaluated_without_an_error(metrics: Prometheus) -> None:
    groups: Any = httpx.get(f"{metrics.address}/api/v1/rules").json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in rules} >= CAUSES.keys()
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []


@pytest.mark.parametrize("alert", CAUSES)
def test_an_alert_fires_by_its_cause_and_ends_with_it(stage: Stage, metrics: Prometheus, alert: str) -> None:
    where, cause = CAUSES[alert]

    def told() -> list[dict[str, Any]]:
        return metrics.query("ALERTS")

    until(lambda: not metrics.fires(alert, where), ALERT_SECONDS, story=told)
    with cause(stage):
        until(lambda: metrics.fires(alert, where), ALERT_SECONDS, story=told)
    until(lambda: not metrics.fires(alert, where), ALERT_SECONDS, story=told)
