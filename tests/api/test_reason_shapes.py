"""The document names every code of a reason and of an alert, and the figures of reasons: no figure more."""

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from scheduler_core import run_session
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.result import reason_to_json
from tests import builders as b
from tests.golden.stories import built
from tidesched_web.api.document.served import document
from tidesched_web.api.v1.serializers.scheduling import ALERT_CODES
from tidesched_web.console.alert_words import _SENTENCES

STORIES = Path(__file__).parents[1] / "golden" / "reasons.yaml"


@pytest.fixture(scope="module")
def reasons():
    """Every reason of the stories about reasons."""
    found = []
    for case in yaml.load(STORIES.read_text(), yaml.CSafeLoader)["cases"].values():
        policy = parse_policy(case["policy"]) if "policy" in case else b.founding_policy(**case.get("options", {}))
        objects = [*b.priority_classes()] if case.get("classes", True) else []
        for entry in case["cluster"]:
            objects += built(entry)
        result, _memory = run_session(b.taken(objects), policy, now=b.now(case.get("now", 10_000)), memory=None)
        found += [reason_to_json(reason) for reason in result.reasons]
    return found


def test_each_reason_of_the_stories_has_figures_that_the_document_names(reasons):
    said = document()["components"]
    wrong = {}
    for reason in reasons:
        shown = {name: reason[name] for name in ("code", "numbers", "message")}
        for error in Draft202012Validator(said["schemas"]["ImpactReason"] | {"components": said}).iter_errors(shown):
            wrong[reason["code"]] = (error.message[:300], reason["numbers"])
    assert wrong == {}
    assert len({reason["code"] for reason in reasons}) >= 12


def test_a_figure_that_no_reason_has_is_against_the_document():
    said = document()["components"]
    suspended = {"code": "Suspended", "numbers": {"position": 1, "heat": 4}, "message": ""}
    assert not Draft202012Validator(said["schemas"]["ImpactReason"] | {"components": said}).is_valid(suspended)


def test_every_alert_that_has_words_is_a_code_of_the_document():
    assert _SENTENCES.keys() | {"eviction_budget"} == dict(ALERT_CODES).keys()
