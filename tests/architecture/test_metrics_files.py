"""Rules and boards ask for metrics that there are, and each alert says where to read on."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from scheduler_core.model.reason import ENDED_BY_CARDS, ReasonCode
from tests.architecture import mentions, sources

FILES = sources.ROOT / "deploy" / "helm" / "tidesched" / "files"
RULES = sorted((FILES / "prometheus").glob("*.rules.yaml"))
BOARDS = sorted((FILES / "grafana").glob("*.json"))
TESTS = sources.ROOT / "deploy" / "prometheus" / "tests.yaml"
PAGE = sources.ROOT / "docs" / "metrics.md"
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


def rules() -> list[dict]:
    return [rule for path in RULES for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[dict]:
    return [rule for rule in rules() if "alert" in rule]


def panels() -> Iterator[tuple[str, dict]]:
    for path in BOARDS:
        yield from ((f"{path.name}: {one['title']}", one) for one in json.loads(path.read_text())["panels"])


def expressions() -> Iterator[tuple[str, str]]:
    yield from ((rule.get("alert") or rule["record"], rule["expr"]) for rule in rules())
    yield from ((name, target["expr"]) for name, panel in panels() for target in panel["targets"])
    for path in BOARDS:
        for variable in json.loads(path.read_text())["templating"]["list"]:
            yield f"{path.name}: ${variable['name']}", variable["query"]


def known_names() -> set[str]:
    """The metrics of the table, a histogram with its parts; and what the rules record."""
    names = {rule["record"] for rule in rules() if "record" in rule}
    for metric, kind in re.findall(r"^\| `(tidesched_\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE):
        names |= {metric + part for part in HISTOGRAM_PARTS} if kind == "histogram" else {metric}
    return names


def test_there_are_eight_alerts_and_three_boards() -> None:
    assert len({rule["alert"] for rule in alerts()}) == len(alerts()) == 8
    assert [path.stem for path in BOARDS] == ["cluster", "operations", "tenant"]


def test_the_chart_and_the_tests_take_these_files_and_there_are_no_others() -> None:
    template = (FILES.parent / "templates" / "monitoring.yaml").read_text()
    assert set(re.findall(r'Glob "([^"]+)"', template)) == {"files/prometheus/*.yaml", "files/grafana/*.json"}
    assert 'grafana_dashboard: "1"' in template
    named = yaml.safe_load(TESTS.read_text())["rule_files"]
    assert sorted((TESTS.parent / name).resolve() for name in named) == sorted(RULES)
    copies = [path for path in sources.committed() if path.match("*.rules.yaml") and path not in RULES]
    assert copies == []


def test_rules_and_boards_ask_for_metrics_of_the_table() -> None:
    known, asked = known_names(), 0
    for where, expression in expressions():
        for name in re.findall(r"\btidesched[_:][\w:]+", expression):
            asked += 1
            assert name in known, f"{where} asks for {name}, which is not in the table of docs/metrics.md"
    assert asked > 80


def test_what_is_recorded_is_in_the_document() -> None:
    text = PAGE.read_text()
    assert [rule["record"] for rule in rules() if "record" in rule and f"`{rule['record']}`" not in text] == []


def test_every_alert_says_what_is_so_how_much_how_bad_and_where_to_read_on() -> None:
    headings = mentions.read("docs/metrics.md", PAGE.read_text()).headings
    for rule in alerts():
        told = rule["annotations"]
        assert told["summary"], rule["alert"]
        assert re.search(r"\$value|\d", told["description"]), f"{rule['alert']}: no figure"
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert told["runbook_url"] == f"docs/metrics.md#{rule['alert'].lower()}"
        assert rule["alert"] in headings, f"docs/metrics.md has no section {rule['alert']}"
        assert f"\n      - alertname: {rule['alert']}\n" in TESTS.read_text(), f"{rule['alert']}: no test that it fires"
        assert f"alertname: {rule['alert']}, eval_time" in TESTS.read_text(), f"{rule['alert']}: none that it does not"


def test_gangs_wait_for_cards_by_the_reasons_that_no_quota_ends() -> None:
    (rule,) = (one for one in alerts() if one["alert"] == "TideSchedGangsWait")
    asked = set(re.search(r'reason=~"([^"]+)"', rule["expr"])[1].split("|"))
    assert asked == ENDED_BY_CARDS | {ReasonCode.WAITING_FOR_RECLAIM, ReasonCode.WAITING_FOR_RESOURCES}


def test_every_panel_has_title_unit_legend_and_the_data_source_of_the_variable() -> None:
    for name, panel in panels():
        assert panel["title"], name
        assert panel["fieldConfig"]["defaults"]["unit"], name
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, name
        assert all(target["legendFormat"] for target in panel["targets"]), name
    for path in BOARDS:
        variables = [one["name"] for one in json.loads(path.read_text())["templating"]["list"]]
        assert variables[:2] == ["datasource", "cluster"], path.name


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")
@pytest.mark.parametrize("command", [["check", "rules", *RULES], ["test", "rules", TESTS]], ids=["check", "test"])
def test_promtool_takes_the_rules(command) -> None:
    answer = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
