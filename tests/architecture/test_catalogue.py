"""The Chinese catalogue has one word for each term and Chinese punctuation, and no text escapes the extraction."""

import ast
import re
from io import StringIO
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from django.core.management import call_command
from django.template import Context, Template
from django.utils.translation import override

from tidesched_web.common.sentences import listed
from tidesched_web.console import catalogue

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
HAN = "[\u4e00-\u9fff）”》]"
# What follows Chinese text directly belongs to its sentence; a sign of an address or a placeholder does not.
PUNCTUATION = re.compile(
    rf"{HAN}[,;:!?](?!//)|{HAN}\.(?=\s|$)|[,;:!?](?=[\u4e00-\u9fff])|[\u4e00-\u9fff] ?\((?!s\b)|\) ?(?=[\u4e00-\u9fff])"
)
# A sign between two tags is part of no text that is translated; addresses and keys in attributes have no blank.
# What is written in the place of a name is Chinese often enough: its signs are those of the sentence.
NAMED = re.compile(r"%\(\w+\)[sd]|\{\w+\}")
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|\{\w*\}|`[^`]*`")
BY_HAND = r"^Take back now|layer\)s was taken back|nothing to take back|take back what it lends"
# English term → the one Chinese word for it, and words that other texts once had for it.
GLOSSARY = {
    # 任务 alone is no gang, and no pod: it is the word of background jobs.
    r"\bgangs?\b": ("作业组", ("(?<!后台)任务", "gang")),
    r"\bqueues?\b": ("队列", ("排队组",)),
    r"\btenants?\b": ("租户", ("承租方",)),
    r"\breclaims?\b": ("回收", ("索回",)),
    r"\btide plans?\b": ("潮汐计划", ("潮汐方案",)),
    r"\bguards?\b": ("保护机制", ("护栏",)),
    r"\baccounts?\b": ("账号", ("账户",)),
    r"\baudit entr(?:y|ies)\b": ("审计记录", ("审计条目",)),
    r"\bopen layers?\b|\blayer is open\b|\bopen now\b": ("生效", ("打开",)),
    # Cards are reclaimed by an eviction; what a tide plan lends is taken back by hand, and no gang is evicted.
    rf"^(?!.*(?:{BY_HAND})).*(?:\btakes? back\b|\btaken back\b|\bcards back\b)": ("回收", ("收回", "取回")),
    BY_HAND: ("收回", ("回收",)),
    r"\bcard types?\b|\bof each type\b|\bof which type\b": ("卡型", ("型号",)),
    r"\bauthor\b": ("提交人", ("作者",)),
    r"\bare in use\b|\bcards in use\b": ("在用", ("在使用", "使用中")),
    r"\bbase (?:quota|holds)\b": ("基准配额", ("基础配额", "基准值")),
    r"\brecorded sessions?\b|\bnext session\b": ("会话", ("次调度",)),
}
# A Chinese sentence may speak of a thing without naming it; these name it otherwise on purpose.
SIGNED_IN = "Its check value does not fit your session"
KNOWN_NAMES = frozenset({"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext_lazy"})


def texts() -> list[tuple[str, str]]:
    with CATALOGUE.open("rb") as file:
        messages = [message for message in read_po(file) if message.id]
    return [
        (message.id if isinstance(message.id, str) else message.id[0], text)
        for message in messages
        for text in (message.string if isinstance(message.string, tuple) else (message.string,))
    ]


def test_chinese_sentences_have_chinese_punctuation() -> None:
    wrong = [
        text
        for _id, text in texts()
        if re.search(r"[\u4e00-\u9fff]", text) and PUNCTUATION.search(PLACEHOLDER.sub("x", NAMED.sub("数", text)))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_blank_follows_a_chinese_sign() -> None:
    """The sign brings its own."""
    wrong = [text for _id, text in texts() if re.search(r"[。，：；！？、）”](?: | ?\n) *[\u4e00-\u9fff“（]", text)]
    assert not wrong, "\n".join(wrong)


def test_things_of_one_kind_have_the_comma_of_a_list_between_them() -> None:
    """Chinese has one of its own; "，" is between clauses, and between the facts of one thing."""
    for language, said in (("en", "a, b"), ("zh-hans", "a、b")):
        with override(language):
            assert listed(["a", "b"]) == said
            assert Template("{% load console %}{{ names|listed }}").render(Context({"names": ["a", "b"]})) == said
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in (ROOT / "templates").rglob("*.html")
        for found in re.finditer(r"\|join:.*", path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("term", GLOSSARY)
def test_a_term_has_one_chinese_word(term: str) -> None:
    _word, others = GLOSSARY[term]
    wrong = [
        text
        for identity, text in texts()
        if re.search(term, identity, re.IGNORECASE)
        and not identity.startswith(SIGNED_IN)
        and any(re.search(rf"(?<![A-Za-z]){other}s?(?![A-Za-z])", PLACEHOLDER.sub("", text)) for other in others)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_term_of_the_glossary_is_in_use_and_in_the_docs() -> None:
    page = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    everything = " ".join(text for _id, text in texts())
    for word, _others in GLOSSARY.values():
        assert word in page
        assert word in everything


def test_every_marked_text_is_in_the_catalogue() -> None:
    """A text that is marked within an f-string is not extracted: it has to be marked outside."""
    with CATALOGUE.open("rb") as file:
        known = {
            one for message in read_po(file) for one in ([message.id] if isinstance(message.id, str) else message.id)
        }
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {call.args[0].value}"
        for path in (ROOT / "tidesched_web").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in KNOWN_NAMES - {"pgettext_lazy"}
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value not in known
    ]
    assert not wrong, "\n".join(wrong)


def test_texts_are_marked_by_names_that_the_extraction_knows() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found[1]}"
        for path in (ROOT / "tidesched_web").rglob("*.py")
        for found in re.finditer(r"import n?p?gettext\w* as (\w+)", path.read_text(encoding="utf-8"))
        if found[1] not in KNOWN_NAMES
    ]
    assert not wrong, wrong


def test_the_command_takes_in_new_texts_and_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "django.po"
    path.write_bytes(CATALOGUE.read_bytes())
    with CATALOGUE.open("rb") as file:
        known = read_po(file, locale="zh_Hans")
    known.add("A text that nothing has translated yet")
    monkeypatch.setattr(catalogue, "path_of", lambda _language: path)
    monkeypatch.setattr(catalogue, "extracted", lambda: known)
    said = StringIO()
    call_command("messages", stdout=said)
    assert said.getvalue().splitlines() == ["zh_Hans: 1 to translate", "  A text that nothing has translated yet"]
    assert "A text that nothing has translated yet" in path.read_text(encoding="utf-8")
