"""A real Prometheus that scrapes an installation, with the rules of the chart in a hurry: their minutes are seconds."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from tests.browser.servers import ROOT, free_port, until_it_answers

FILES = ROOT / "deploy" / "helm" / "tidesched" / "files"
RULES = sorted((FILES / "prometheus").glob("*.rules.yaml"))
BOARDS = sorted((FILES / "grafana").glob("*.json"))
RULE_TESTS = ROOT / "deploy" / "prometheus" / "tests.yaml"
_INTERVAL = "3s"


def hurried(rules: str) -> str:
    """How long something must last, and over which span it is counted: seconds for minutes, half a minute for a day."""
    return re.sub(r"(for: |\[)(\d+)m", r"\1\2s", rules).replace("for: 1d", "for: 30s")


@dataclass(frozen=True)
class Prometheus:
    address: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant, each with its labels as `metric` and its `value`."""
        with urlopen(f"{self.address}/api/v1/query?{urlencode({'query': expression})}", timeout=20) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def fires(self, alert: str, where: str) -> bool:
        return bool(self.query(f'ALERTS{{alertname="{alert}", alertstate="firing", {where}}}'))


@contextlib.contextmanager
def running(folder: Path, target: str, token: str) -> Iterator[Prometheus]:
    """Scrape `target` (host:port) with a token."""
    for path in RULES:
        (folder / path.name).write_text(hurried(path.read_text()))
    (folder / "token").write_text(token)
    job = {
        "job_name": "tidesched",
        "authorization": {"credentials_file": str(folder / "token")},
        "static_configs": [{"targets": [target]}],
    }
    times = {"scrape_interval": _INTERVAL, "scrape_timeout": _INTERVAL, "evaluation_interval": "1s"}
    configuration = {"global": times, "rule_files": ["*.rules.yaml"], "scrape_configs": [job]}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    listen = f"127.0.0.1:{free_port()}"
    command = ["prometheus", "--config.file", "prometheus.yaml", "--storage.tsdb.path", "data"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--web.listen-address", listen], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        until_it_answers(f"http://{listen}/-/ready", process, folder / "prometheus.log", 60)
        yield Prometheus(f"http://{listen}")
    finally:
        process.terminate()
        process.wait(30)
