"""The engine is a function: no clock, no unseeded chance, no compiled kernel without the project's own rules."""

import ast
import subprocess
import sys
from collections.abc import Iterator

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
# Decorators of functions that Python may call only where they are marked ``from_python`` too.
PARTS = {"compiled_loop", "compiled_branchy", "compiled_apart"}


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


def _decorators(node: ast.AST) -> set[str]:
    return {one.id for one in getattr(node, "decorator_list", []) if isinstance(one, ast.Name)}


def _interpreted(node: ast.AST) -> Iterator[ast.Name]:
    """Names that a file reads outside of compiled functions."""
    for child in ast.iter_child_nodes(node):
        if not _decorators(child) & {"compiled", "compiled_inline", *PARTS}:
            yield from _interpreted(child)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node


def test_python_calls_no_compiled_function_without_a_way_in() -> None:
    """Such a call would end the process."""
    files = {path: ".".join(path.relative_to(sources.ROOT).with_suffix("").parts) for path in sources.python(".")}
    closed = {
        (module, node.name)
        for path, module in files.items()
        for node in sources.tree(path).body
        if isinstance(node, ast.FunctionDef) and _decorators(node) & PARTS and "from_python" not in _decorators(node)
    }
    wrong = []
    for path, module in files.items():
        known = {name for where, name in closed if where == module}
        for node in ast.walk(sources.tree(path)):
            if isinstance(node, ast.ImportFrom):
                known |= {one.asname or one.name for one in node.names if (node.module, one.name) in closed}
        wrong += [sources.place(path, name) for name in _interpreted(sources.tree(path)) if name.id in known]
    assert closed
    assert wrong == []


@pytest.mark.parametrize(
    "module", ["scheduler_core.serde.text", "scheduler_core.serde.policy.tree", "tidesched_web.engine.yaml_shape"]
)
def test_each_reader_can_be_imported_first(module: str) -> None:
    """Which process imports what first is chance: none may hang on what another one has imported before."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
