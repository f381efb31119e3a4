"""Only selectors and services ask the database; everything else calls them."""

import ast
from pathlib import Path

import pytest

from tests.architecture import sources

# The session pipeline is one service in a folder; partitions, locks and retention are what services are made of.
ASKING = {"selectors", "services", "models", "migrations", "pipeline", "partitions", "locking", "retention"}
MANAGERS = {"objects", "_default_manager"}
WRITES = {"save", "bulk_create", "bulk_update", "update_or_create", "get_or_create"}
CHAINED = {"filter", "exclude", "all"}


def may_ask(path: Path) -> bool:
    parts = path.relative_to(sources.ROOT).with_suffix("").parts
    return any(part in ASKING or part.endswith(("_selectors", "_services")) for part in parts)


def queries(tree: ast.Module) -> list[ast.Attribute]:
    """The places of a tree that ask the database or write to it."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        before = node.value.func if isinstance(node.value, ast.Call) else None
        after_filter = isinstance(before, ast.Attribute) and before.attr in CHAINED
        if node.attr in MANAGERS | WRITES or (node.attr in {"update", "delete"} and after_filter):
            found.append(node)
    return found


def test_only_selectors_and_services_query() -> None:
    wrong = [
        f"{sources.place(path, node)}: .{node.attr}"
        for path in sources.python("tidesched_web")
        if not may_ask(path)
        for node in queries(sources.tree(path))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("User.objects.get(pk=1)", True),
        ("queue.save()", True),
        ("rows.filter(a=1).update(b=2)", True),
        ("rows.exclude(a=1).delete()", True),
        ("settings.update(a=1)", False),
        ("client.delete(url)", False),
    ],
)
def test_what_counts_as_a_query(line: str, asks: bool) -> None:
    assert bool(queries(ast.parse(line))) is asks


def test_what_runs_after_a_commit_has_a_name_and_fails_no_answer() -> None:
    """Django writes the name of what failed there to the log; where there is none, the answer to the request is 500."""
    wrong = [
        sources.place(path, node)
        for path in sources.python("tidesched_web")
        for node in ast.walk(sources.tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "on_commit"
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "transaction"
        if not (isinstance(node.args[0], ast.Name | ast.Lambda) and "robust" in {word.arg for word in node.keywords})
    ]
    assert wrong == []
