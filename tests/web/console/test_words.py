"""Texts, numbers, colours and icons: complete in every language, the same in style sheet and figures."""

from __future__ import annotations

import re
import signal
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import settings
from django.template import engines
from django.utils import timezone, translation

from scheduler_core.framework.messages import meant, sentence
from scheduler_core.model.reason import ReasonCode, ReasonNumbers
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.podgroup import read_notes
from tidesched_web.clusters import finding_words
from tidesched_web.common.card_names import card_label
from tidesched_web.console import (
    amounts,
    hold_words,
    reason_words,
    remedy_words,
)
from tidesched_web.console.alert_words import alert_sentence
from tidesched_web.console.extraction import extract_django

BASE = Path(settings.BASE_DIR)


def test_the_end_of_credentials_is_in_the_readers_zone_whose_name_means_one_zone() -> None:
    """CST is the zone of Shanghai and of Chicago."""
    finding = {"code": "lasts", "values": {"at": "2026-12-01T00:00:00+00:00"}}
    with timezone.override("Asia/Shanghai"):
        assert finding_words.sentence(finding) == "The credentials hold until 2026-12-01 08:00 UTC+8."


@pytest.mark.parametrize("amount", [0, 0.5, 1, 2])
@pytest.mark.parametrize("resource", ["NVIDIA-H200", "cpu", "memory", "pods"])
def test_one_of_a_thing_is_and_several_are(resource: str, amount: float) -> None:
    unit = {"cpu": 1000, "memory": 2**30}.get(resource, 1)
    numbers = {
        "resource": resource, "requested": 8 * unit, "limit": 40 * unit, "position": 3, "nodes": {"too small": 1},
        **dict.fromkeys(("allocated", "inqueue", "free", "short"), amount * unit),
    }  # fmt: skip
    leads = re.compile(r"([\d.]+)(?: GiB)?(?: (?:×|of) \S+)?(?: (?:CPU cores|memory|pods))? (is|are)\b")
    spoken = 0
    for code in {*ReasonCode} - (set() if resource == "pods" else {ReasonCode.GANG_INCOMPLETE}):
        for held in (None, [{"gang": "a/b", "amount": amount * unit}]):
            said = reason_words.reason_sentence(code, numbers | ({"holders": held} if held else {}))
            said += " " + remedy_words.no_remedy_sentence(code, numbers, "train")
            for number, verb in leads.findall(said):
                assert verb == ("is" if number == "1" else "are"), said
                spoken += 1
    assert spoken >= 8


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0042, "4.2 ms"),
        (0.137, "137 ms"),
        (59.4, "59 s"),
        (61, "1 min 1 s"),
        (600, "10 min"),
        (3600, "1 h"),
        (11_520, "3 h 12 min"),
        (86_400, "1 d"),
        (100_000, "1 d 3 h"),
        (-5, "0 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert amounts.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (12_345, "12,345"), (0.46, "0.46"), (8.25, "8.2"), (3.0, "3"), (104.97, "105")]
)
def test_numbers(value: float, text: str) -> None:
    assert amounts.number(value) == text
    with translation.override("zh-hans"):
        assert amounts.number(value) == text


def test_a_text_of_several_lines_is_one_message_as_it_is_looked_up() -> None:
    """`trimmed` joins the lines of a template; what is extracted has to be the same text."""
    template = (
        "{% load i18n %}{% blocktranslate trimmed with who=who %}\n  {{ who }} has\n    100 % of it.\n"
        "{% endblocktranslate %}{% blocktranslate trimmed count n=2 %}\n one\n line\n{% plural %}\n {{ n }}\n"
        " lines\n{% endblocktranslate %}{% blocktranslate %} kept {% endblocktranslate %}"
    )
    found = [message for _line, _kind, message, _notes in extract_django(BytesIO(template.encode()), {}, (), {})]
    assert found == ["%(who)s has 100 %% of it.", ("one line", "%(n)s lines"), " kept "]
    looked_up: list[object] = []
    with (
        patch("django.templatetags.i18n.translation.gettext", lambda text: looked_up.append(text) or text),
        patch("django.templatetags.i18n.translation.ngettext", lambda *texts: looked_up.append(texts[:2]) or texts[1]),
    ):
        engines["django"].from_string(template).render({"who": "Mei"})
    assert looked_up == found


def test_counts_are_written_with_their_thousands_and_still_choose_the_plural() -> None:
    text = (
        "{% load i18n console %}{% blocktranslate count n=n|counted %}{{ n }} gang is alive{% plural %}"
        "{{ n }} gangs are alive{% endblocktranslate %}"
    )
    template = engines["django"].from_string(text)
    assert template.render({"n": 1}) == "1 gang is alive"
    assert template.render({"n": 12_345}) == "12,345 gangs are alive"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("NVIDIA-H200", "H200"),
        ("NVIDIA-GeForce-RTX-4090", "RTX-4090"),
        ("NVIDIA-H200/mig-1g.18gb-mixed", "H200 MIG 1g.18gb"),
        ("Tesla-V100/mps-32g*1/4", "V100 MPS 1/4"),
        ("NVIDIA-A100|NVIDIA-H200", "A100 or H200"),
    ],
)
def test_card_labels(name: str, label: str) -> None:
    assert card_label(name) == label


@pytest.mark.parametrize(
    ("code", "numbers", "everything", "text"),
    [
        ("node_lost", {"node": "h200-01"}, False, "Node h200-01 has left the cluster."),
        ("eviction_budget", {"rule": "gangs_per_minute"}, False, str(hold_words.HOLDS["gangs_per_minute"])),
        ("session_failed", {}, False, "A session could not decide."),
        ("session_failed", {}, True, "A session could not decide. raw"),
        ("node_lost", {}, True, "raw"),
        ("something_new", {}, False, "something_new"),
    ],
)
def test_alerts_speak_without_telling_too_much(code: str, numbers: dict, everything: bool, text: str) -> None:
    assert alert_sentence(code, numbers, "raw", everything=everything) == text


HAN = re.compile(r"[\u4e00-\u9fff]")


def test_what_is_wrong_with_a_gang_as_written_is_said_in_the_readers_language() -> None:
    """The sentences are the engine's own, made by its functions: its words and those that the console knows agree."""
    known = [f"queue-{number}" for number in range(12)]
    details = [
        "queue nowhere does not exist",
        f"queue quee-3 does not exist; {meant('quee-3', known)}",
        f"queue train-retired does not exist; {meant('train-retired', known)}",
        f"queue train-retired does not exist; {meant('train-retired', known[:2])}",
        "asks for 1.5 of one card; a share is at most one card",
        *(read_notes({key: "x"}, {}).problem for key in (keys.SERVICE_TYPE, keys.SUBMITTED_AT)),
    ]
    for detail in details:
        message = sentence(ReasonCode.MISCONFIGURED, ReasonNumbers(), "q", detail)
        with translation.override("en"):
            assert reason_words.reason_detail("Misconfigured", message) == message.replace("?.", "?")
        with translation.override("zh-hans"):
            said = reason_words.reason_detail("Misconfigured", message)
        assert said.startswith("无法按现有写法调度："), said
        assert not re.search(r"\b(does|there|asks|annotation|more)\b", said), said
        assert said.endswith(("。", "？"))
    other = "Cannot be scheduled as written: something new."
    with translation.override("zh-hans"):
        assert reason_words.reason_detail("Misconfigured", other) == "无法按现有写法调度：something new。"


@pytest.mark.parametrize(
    "detail",
    [
        f"annotation x: {': ' * 100_000}is not an RFC 3339 time",
        f"queue {'q does not exist; there are a and b and ' * 5_000} more!",
    ],
    ids=["annotation", "queue"],
)
def test_a_long_annotation_costs_its_length(detail: str) -> None:
    """Any account that may write a PodGroup chooses the text; a search at every place would take hours."""

    def too_long(*_: object) -> None:
        raise TimeoutError("its words are sought again and again")

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10)
    try:
        with translation.override("en"):
            assert reason_words.reason_detail("Misconfigured", f"Cannot be scheduled as written: {detail}.").endswith(
                "."
            )
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
