"""What a person can say to the product is in the documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from django.core.management import get_commands

from tests.architecture import sources

DOCS = sources.ROOT / "docs"
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\{.*?\}\}|\{%\s*(?:if|for|with|include)\b.*?%\}")
READERS = {"text", "flag", "number", "words", "secret"}


def documents() -> str:
    """All pages of docs/ and the three at the root."""
    pages = [*sorted(DOCS.rglob("*.md")), *sorted(sources.ROOT.glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


# Plain technical English names who acts: evicted, sent, reported; no gang, another manager, the process that …
UNPLAIN_IN_CODE = re.compile(
    r"\b(?:fell|told|nobody|somebody|whoever|whomever)\b|\b(?:gangs?|who) falls?\b", re.IGNORECASE
)
# A key is in a list, a message says, a caller passes on.
UNPLAIN = re.compile(
    rf"{UNPLAIN_IN_CODE.pattern}|\b(?:anybody|everybody|stands?(?!-in)|stood|tells?|telling)\b"
    r"|\bhand(?:s|ed)? (?:it |them )?on\b|\bfalls? (?:whole|for)\b|\bbelong together\b|\btaken in on\b",
    re.IGNORECASE,
)
# What names an attribute or an argument is no prose.
NAME = re.compile(r"``[^`]*``|\b\w+:(?=\s)")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a module's docstrings and comments, by number."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(sources.tree(path)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield from enumerate(first.value.value.splitlines(), first.lineno)


@pytest.mark.parametrize(
    ("folder", "unplain"),
    [("scheduler_core", UNPLAIN), ("tidesched_web", UNPLAIN_IN_CODE), ("bench", UNPLAIN_IN_CODE)],
    ids=["scheduler_core", "tidesched_web", "bench"],
)
def test_docstrings_and_comments_are_in_plain_words(folder: str, unplain: re.Pattern[str]) -> None:
    wrong = [
        f"{path.relative_to(sources.ROOT)}:{line}: {text.strip()}"
        for path in sources.python(folder)
        for line, text in prose(path)
        if unplain.search(NAME.sub("", text))
    ]
    assert not wrong, "\n".join(wrong)


def test_docs_and_pages_are_in_plain_words() -> None:
    with (sources.ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po").open("rb") as file:
        texts = [
            text for message in read_po(file) for text in ([message.id] if isinstance(message.id, str) else message.id)
        ]
    wrong = [text for text in texts if UNPLAIN.search(PLACEHOLDER.sub("", text))]
    kinds = {".md", ".py", ".yaml"}
    pages = [
        path for folder in ("docs", "deploy") for path in (sources.ROOT / folder).rglob("*") if path.suffix in kinds
    ]
    for page in [*pages, *sources.ROOT.glob("*.md"), *(sources.ROOT / "templates").rglob("*.html")]:
        lines = PLACEHOLDER.sub("", page.read_text(encoding="utf-8")).splitlines()
        wrong += [f"{page.relative_to(sources.ROOT)}: {line.strip()}" for line in lines if UNPLAIN.search(line)]
    assert not wrong, "\n".join(wrong)


def variables() -> set[str]:
    """The environment variables that the settings and the supervisor read."""
    found = set()
    for path in sources.python("tidesched_web"):
        for node in ast.walk(sources.tree(path)):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
            from_env = name in READERS and owner in {"env", ""}
            if (from_env or "environ" in owner) and re.fullmatch(r"[A-Z][A-Z0-9_]+", str(node.args[0].value)):
                found.add(str(node.args[0].value))
    return found - {"DJANGO_SETTINGS_MODULE", "NO_COLOR", "PATH"}


def test_every_variable_is_documented() -> None:
    table = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert {name for name in variables() if f"`{name}`" not in table} == set()


def test_every_command_is_documented() -> None:
    own = {name for name, app in get_commands().items() if str(app).startswith("tidesched_web.")}
    assert own
    text = documents()
    assert {name for name in own if f"manage.py {name}" not in text} == set()


def test_every_make_target_is_documented() -> None:
    makefile = (sources.ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE)
    assert {"up", "down", "test", "check", "bench", "clean", "help"} <= set(targets)
    assert {target for target in targets if f"make {target}" not in documents()} == set()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")) + sorted(sources.ROOT.glob("*.md")), ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(page) -> None:
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_departure_from_upstream_is_in_the_list() -> None:
    page = (sources.ROOT / "docs" / "differences-from-volcano.md").read_text(encoding="utf-8")
    switched = [
        path.stem.replace("_", "-")
        for folder in ("scheduler_core/plugins", "scheduler_core/actions")
        for path in (sources.ROOT / folder).glob("*.py")
        if "session.compat" in path.read_text(encoding="utf-8")
    ]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    assert switched
    assert [name for name in sorted(switched) if not any(re.search(rf"\b{name}\b", row) for row in rows)] == []
