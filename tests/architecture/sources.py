"""The project's own files, read once for the tests of its shape."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@cache
def committed() -> tuple[Path, ...]:
    """All files under version control, or about to be; where there is no git, those of the source folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        folders = ("scheduler_core", "tidesched_web", "tests", "docs", "templates", "static/css", "static/js")
        names = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return tuple(sorted(path for path in names if path.is_file()))


def python(folder: str) -> list[Path]:
    """The Python files below a folder of the project."""
    return [path for path in committed() if path.suffix == ".py" and path.is_relative_to(ROOT / folder)]


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def tests_of(path: Path) -> set[str]:
    """The names of a file's tests, and of its classes that hold some."""
    found = set()
    for owner in ast.walk(tree(path)):
        if not isinstance(owner, ast.Module | ast.ClassDef):
            continue
        tests = {one.name for one in owner.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}
        found |= tests | ({owner.name} if tests and isinstance(owner, ast.ClassDef) else set())
    return found


def place(path: Path, node: ast.AST) -> str:
    """Where a finding is, as an editor opens it."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
