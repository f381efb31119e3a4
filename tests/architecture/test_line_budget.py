"""The line budget counts what belongs to a part, and names the part that has more than it may have."""

from pathlib import Path

from tests import line_budget


def test_an_excess_is_named(tmp_path: Path) -> None:
    texts = {
        "tidesched_web/urls.py": 2,
        "tidesched_web/quota/models.py": 4,
        "tidesched_web/quota/migrations/one.sql": 3,
        "tidesched_web/quota/notes.md": 50,
        "templates/quota/tree.html": 5,
        "tests/web/test_quota.py": 50,
    }
    for name, lines in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a line\n" * lines)
    used = line_budget.lines_in_use(tmp_path.rglob("*.*"), tmp_path)
    assert used == {"root": 2, "quota": 7, "templates": 5}
    table, wrong = line_budget.compared(used, {"root": 2, "quota": 4, "templates": 9})
    assert wrong == ["quota has 3 lines more than its budget of 4 (tool.line-budget in pyproject.toml)"]
    assert ["quota", "7", "4", "-3"] in [line.split() for line in table.splitlines()]
