"""Texts, colours and icons are complete in every language, and the same in templates, style sheet and figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import translation

from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.rules import Rule
from tidesched_web.common.alive import ROLES
from tidesched_web.console import assets, catalogue, reason_words, rule_words
from tidesched_web.console.alert_words import alert_name
from tidesched_web.console.figures import palette
from tidesched_web.console.process_words import role_words
from tidesched_web.console.states import LOOKS

BASE = Path(settings.BASE_DIR)
HAN = re.compile(r"[\u4e00-\u9fff]")


def tokens(selector: str) -> dict[str, str]:
    css = (BASE / "static/css/console.css").read_text()
    block = re.search(re.escape(selector) + r" \{(.*?)\n\}", css, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--ts-([\w-]+): (#[0-9a-f]{6});", block[1]))


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


def test_each_reason_code_has_a_name_and_a_sentence() -> None:
    assert set(reason_words.TITLES) == {code.value for code in ReasonCode}
    for code in ReasonCode:
        assert reason_words.reason_sentence(code, {}) not in ("", str(code)), code


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
    tag, sign = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}"), re.compile(r"\x00\s*([.,;!?]+)(?=[\s\x00“]|$)")
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
    sentence = re.compile(
        r"""(?:yield|refused\[\w+\] =|\), |fromkeys\(\w+,|Needs\(|\brule =|is not None else) f?"(?=[a-z]+.? [a-z])"""
    )
    found = [
        f"{path.name}: {line.strip()}"
        for folder in ("plugins", "actions", "algorithms", "framework")
        for path in sorted((BASE / "scheduler_core" / folder).rglob("*.py"))
        for line in path.read_text().splitlines()
        if sentence.search(line)
    ]
    assert found == []
