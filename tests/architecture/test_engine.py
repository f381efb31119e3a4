"""The engine is a function: no clock, no unseeded chance, no compiled kernel without the project's own rules."""

import ast
import subprocess
import sys

import pytest

from tests.architecture import sources

CLOCKS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "monotonic"),
    ("time", "sleep"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}
SEEDED = {"Random", "default_rng", "Generator", "PCG64", "SeedSequence"}
# The one module that may import Numba: its decorator sets nogil, so that a heartbeat goes on, and the cache.
COMPILER = "scheduler_core/algorithms/compiled.py"


def _called(node: ast.AST) -> tuple[str, str] | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        value = node.func.value
        name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
        return name, node.func.attr
    return None


def test_the_engine_reads_no_clock() -> None:
    wrong = [
        sources.place(path, node)
        for path in sources.python("scheduler_core")
        for node in ast.walk(sources.tree(path))
        if _called(node) in CLOCKS
    ]
    assert wrong == []


def test_the_engine_draws_no_unseeded_number() -> None:
    wrong = [
        sources.place(path, node)
        for path in sources.python("scheduler_core")
        for node in ast.walk(sources.tree(path))
        if (called := _called(node)) and called[0] == "random" and called[1] not in SEEDED
    ]
    assert wrong == []


def test_kernels_are_compiled_by_one_decorator() -> None:
    wrong = [
        sources.place(path, node)
        for path in sources.python("scheduler_core")
        if path != sources.ROOT / COMPILER
        for node in ast.walk(sources.tree(path))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba")
        or (isinstance(node, ast.Import) and any(name.name.partition(".")[0] == "numba" for name in node.names))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "module", ["scheduler_core.serde.text", "scheduler_core.serde.policy.tree", "tidesched_web.engine.yaml_shape"]
)
def test_each_reader_can_be_imported_first(module: str) -> None:
    """Which process imports what first is chance: none may hang on what another one has imported before."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
