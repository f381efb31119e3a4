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
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.reason import ReasonCode, ReasonNumbers
from scheduler_core.model.rules import Rule
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.podgroup import read_notes
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters import finding_words
from tidesched_web.common.alive import ROLES
from tidesched_web.common.card_names import card_label
from tidesched_web.console import (
    amounts,
    assets,
    audit_words,
    bars,
    catalogue,
    change_words,
    hold_words,
    reason_words,
    remedy_words,
    rule_words,
)
from tidesched_web.console.actor_words import actor_words
from tidesched_web.console.alert_words import alert_name, alert_sentence
from tidesched_web.console.extraction import extract_django
from tidesched_web.console.figures import palette
from tidesched_web.console.process_words import role_words
from tidesched_web.console.states import LOOKS

BASE = Path(settings.BASE_DIR)


@pytest.mark.parametrize("language", catalogue.LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    there = catalogue.read(language)
    ids = {message.id for message in catalogue.extracted() if message.id}
    known = {message.id for message in there if message.id}
    assert sorted(map(str, ids - known)) == [], "run manage.py messages and translate what it lists"
    assert sorted(map(str, known - ids)) == [], "run manage.py messages: these are gone"
    assert catalogue.untranslated(there) == []


@pytest.mark.parametrize("language", catalogue.LANGUAGES)
def test_a_translation_names_the_same_figures(language: str) -> None:
    names = re.compile(r"%\((\w+)\)s|%s")
    for message in catalogue.read(language):
        if not message.id:
            continue
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        texts = message.string if isinstance(message.string, tuple) else (message.string,)
        allowed = {found[0] for text in ids for found in names.finditer(text)}
        for text in texts:
            assert {found[0] for found in names.finditer(text)} <= allowed, message.id


def test_the_chinese_console_speaks_chinese() -> None:
    with translation.override("zh-hans"):
        assert amounts.duration(3 * 3600 + 12 * 60) == "3 小时 12 分钟"
        text = reason_words.reason_sentence("WaitingForCards", {"resource": "NVIDIA-H200", "requested": 8, "free": 5})
        assert text == "需要 8 × H200，但集群中空闲的仅有 5。"


def test_the_end_of_credentials_is_in_the_readers_zone_whose_name_means_one_zone() -> None:
    """CST is the zone of Shanghai and of Chicago."""
    finding = {"code": "lasts", "values": {"at": "2026-12-01T00:00:00+00:00"}}
    with timezone.override("Asia/Shanghai"):
        assert finding_words.sentence(finding) == "The credentials hold until 2026-12-01 08:00 UTC+8."


def test_who_acted_is_said_in_the_readers_language() -> None:
    with translation.override("zh-hans"):
        assert actor_words("scheduler") == "调度器"
        assert actor_words("ann (token tide_abc…)") == "ann（令牌 tide_abc…）"
        assert actor_words("ann") == "ann"


def test_each_alert_that_is_raised_has_a_name_and_each_role_of_a_process() -> None:
    raised = {
        found
        for path in (BASE / "tidesched_web" / "scheduling").rglob("*.py")
        if "selectors" not in path.name
        for found in re.findall(r"""\bcode["']?[=:] ?["']([a-z_]+)["']""", path.read_text(encoding="utf-8"))
    }
    assert {"drift", "node_lost", "session_failed"} <= raised
    assert sorted(code for code in raised if not alert_name(code)) == []
    assert [role for role in (*ROLES, "web") if not role_words(role)] == []


def test_a_field_of_an_entry_is_said_in_words() -> None:
    assert audit_words.field_words("card_quota › NVIDIA-H200") == "card quota › H200"
    with translation.override("zh-hans"):
        assert audit_words.field_words("expires_at") == "有效期至"
    assert audit_words.field_words("what_a_plugin_keeps") == "what_a_plugin_keeps"


def test_each_reason_code_has_a_name_and_a_sentence() -> None:
    assert set(reason_words.TITLES) == {code.value for code in ReasonCode}
    for code in ReasonCode:
        assert reason_words.reason_sentence(code, {}) not in ("", str(code)), code


@pytest.mark.parametrize(
    ("code", "numbers", "text"),
    [
        (
            "WaitingForCards",
            {"resource": "NVIDIA-H200", "requested": 16, "free": 10, "holders": [{"gang": "a/b", "amount": 6}]},
            "Needs 16 × H200, 10 are free; a/b holds the most, 6.",
        ),
        (
            "WaitingForCards",
            {"resource": "A|B", "requested": 2, "free": 0},
            "Needs 2 × A or B, but only 0 are free in the cluster.",
        ),
        (
            "ExceedsMaxQuota",
            {"resource": "memory", "requested": 2**37, "limit": 2**36},
            "Needs 128 GiB memory, but the quota is 64 GiB: it can never fit.",
        ),
        ("BehindHigherPriority", {"position": 3}, "Place 3 in its queue: more important or older gangs come first."),
    ],
)
def test_sentences_carry_their_numbers(code: str, numbers: dict[str, object], text: str) -> None:
    assert reason_words.reason_sentence(code, numbers) == text


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
    ("code", "more", "text"),
    [
        (
            "WaitingForQuota",
            {"limit": 40, "allocated": 30, "inqueue": 8},
            (
                "22 × H200 are missing in the quota of queue train. It needs 24 × H200; the quota is 40, in use: 30, "
                "promised: 8. More quota alone was tried and is not enough."
            ),
        ),
        (
            "WaitingForCards",
            {"free": 2},
            (
                "22 × H200 are missing among the free cards of the cluster. It needs 24 × H200; free for it: 2. "
                "The quota of its queue is no obstacle."
            ),
        ),
        ("SomethingNew", {}, "22 × H200 are missing."),
    ],
)
def test_what_is_missing_is_said_with_where_it_is_missing(code: str, more: dict[str, float], text: str) -> None:
    numbers = {"resource": "NVIDIA-H200", "requested": 24, "short": 22} | more
    assert remedy_words.no_remedy_sentence(code, numbers, "train") == f"No single change that was tried helps: {text}"


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


def tokens(selector: str) -> dict[str, str]:
    css = (BASE / "static/css/console.css").read_text()
    block = re.search(re.escape(selector) + r" \{(.*?)\n\}", css, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--ts-([\w-]+): (#[0-9a-f]{6});", block[1]))


@pytest.mark.parametrize(("selector", "colours"), [(":root", palette.LIGHT), ('[data-bs-theme="dark"]', palette.DARK)])
def test_figures_have_the_colours_of_the_style_sheet(selector: str, colours: palette.Palette) -> None:
    found = tokens(selector)
    for name in ("inference", "training", "idle", "foreign", "waiting", "reclaimed", "tick"):
        assert found[name] == getattr(colours, name), name


def test_each_icon_in_use_is_in_the_sprite() -> None:
    used = {look.icon for looks in LOOKS.values() for look in looks.values()}
    for template in (BASE / "templates").rglob("*.html"):
        text = template.read_text()
        used |= set(re.findall(r'\{% icon "([\w-]+)"', text)) | set(re.findall(r'symbol="([\w-]+)"', text))
    assert used <= set(assets.ICONS)


def test_each_tone_of_a_template_has_its_colours() -> None:
    """Where it has none, a warning looks like any other text."""
    there = set(re.findall(r"\.tone-([a-z]+)", (BASE / "static/css/console.css").read_text()))
    for template in (BASE / "templates").rglob("*.html"):
        text = template.read_text()
        inside = re.findall(r"\btone-((?:\{%[^%]*%\}|[a-z])+)", text)
        tones = {tone for found in inside for tone in re.sub(r"\{%[^%]*%\}", " ", found).split()} - {"tone"}
        assert tones <= there, template


def test_no_punctuation_of_a_sentence_stands_outside_of_its_texts() -> None:
    """A Chinese page would have the signs of English; the pages without a catalogue say both languages themselves."""
    tag, sign = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}"), re.compile(r"\x00\s*([.,:;!?()]+)(?=[\s\x00“]|$)")
    texts = re.compile(r"\{% blocktranslate.*?\{% endblocktranslate %\}", re.DOTALL)
    shown = re.compile(r"<(pre|code|kbd|script|style|textarea)\b.*?</\1>", re.DOTALL)
    for template in (BASE / "templates").rglob("*.html"):
        if template.name in ("400.html", "500.html", "refused.html"):
            continue
        text = texts.sub("\x00", template.read_text())
        text = re.sub(r"<[^<>]*>", "", shown.sub("", tag.sub("\x00", text)))
        found = sign.findall(text.replace("\x00. \x00", ""))
        assert found == [], (template, found)


def test_no_template_styles_or_acts_inline() -> None:
    for template in (BASE / "templates").rglob("*.html"):
        assert not re.search(r'\s(style|on\w+)="', template.read_text()), template


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


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_of_the_engine_speaks_chinese(rule: Rule) -> None:
    about = dict.fromkeys(re.findall(r"{(\w+)}", rule.value), "x7")
    text = rule.text(**about)
    assert rule_words.rule_text(text)[1:] == (str(rule_words.RULES[rule]) % about)[1:]
    with translation.override("zh-hans"):
        shown = rule_words.rule_text(text)
    assert HAN.search(shown), shown
    assert shown.lower().count("x7") == len(about), shown


@pytest.mark.parametrize("refusal", NodeRefusal)
def test_every_refusal_of_a_node_speaks_chinese(refusal: NodeRefusal) -> None:
    with translation.override("zh-hans"):
        shown = rule_words.refusal_text(refusal.value)
    assert HAN.search(shown), shown


def test_no_plugin_has_a_rule_of_its_own_words() -> None:
    """Rules and refusals of the engine are members of the closed lists, never sentences in place."""
    sentence = re.compile(r"""(?:yield|refused\[\w+\] =|fromkeys\(\w+,|Needs\() f?"(?=[a-z])""")
    found = [
        f"{path.name}: {line.strip()}"
        for folder in ("plugins", "actions", "algorithms", "framework")
        for path in sorted((BASE / "scheduler_core" / folder).rglob("*.py"))
        for line in path.read_text().splitlines()
        if sentence.search(line)
    ]
    assert found == []


def test_names_of_figures_and_objects_are_in_the_readers_language() -> None:
    entry = AuditEntry(object_type="quota_change", object_id="7", object_label="Change 7")
    queue = AuditEntry(object_type="queue", object_id="3", object_label="chat")
    assert change_words.field_name("/quota/inference/card_quota/NVIDIA-H200") == "Inference: H200"
    assert audit_words.object_label(entry) == "Change 7"
    with translation.override("zh-hans"):
        assert change_words.field_name("/quota/inference/card_quota/NVIDIA-H200") == "推理：H200"
        assert change_words.field_name("/quota/inference") == "推理"
        assert audit_words.object_label(entry) == "变更 7"
        assert audit_words.object_label(queue) == "chat"


def test_rules_with_what_they_speak_of() -> None:
    with translation.override("zh-hans"):
        assert rule_words.rule_text("same queue") == "同一队列"
        assert rule_words.rule_text("inference is never taken back") == "推理绝不被回收"
        assert rule_words.rule_text("a rule of a plugin of one's own") == "a rule of a plugin of one's own"
        assert rule_words.refusal_text("cpu in use") == "CPU 核数余量不足"
        nested = Rule.SENT_AWAY.text(plugin="pdb", why=Rule.NO_BUDGET.text())
        assert "PodDisruptionBudget" in rule_words.rule_text(nested)
        assert "protects" not in rule_words.rule_text(nested)


@pytest.mark.parametrize(
    ("inqueue", "waiting", "said"),
    [
        (40_000, 40_000, "40 waiting, of which 40 promised"),
        (8_000, 0, "8 promised"),
        (0, 3_000, "3 waiting"),
        (0, 0, ""),
    ],
)
def test_what_is_promised_is_a_part_of_what_waits(inqueue: int, waiting: int, said: str) -> None:
    with translation.override("en"):
        assert bars.queue_bar("training", 40_000, 0, inqueue, waiting=waiting).extra == said


def test_a_rule_begins_like_a_sentence() -> None:
    with translation.override("en"):
        assert rule_words.rule_text("same queue") == "Same queue"


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
