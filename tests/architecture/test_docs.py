"""What a person can say to the product is in the documents."""

import ast
import re

import pytest
from django.core.management import get_commands

from tests.architecture import sources
from tests.proofs import PROOFS

DOCS = sources.ROOT / "docs"
READERS = {"text", "flag", "number", "words", "secret", "networks", "choice"}


def documents() -> str:
    """All pages of docs/ and the three at the root."""
    pages = [*sorted(DOCS.rglob("*.md")), *sorted(sources.ROOT.glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


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
    table = (sources.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Proofs")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(PROOFS)


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
