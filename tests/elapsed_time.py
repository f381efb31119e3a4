"""No test of the gate compares times that have passed, or sleeps: a busy machine would fail it.

Clocks are passed in; events are awaited by `tests/waiting.py`. Part of `python -m tests.checks`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Proofs run beside the gate and measure.
PROOFS = (
    *("tests/compose_outside.py", "tests/crew", "tests/kube", "tests/volcano"),
    "tests/web/front/test_crowd.py",
)
# file and function -> why it has to let time pass, or to look at it
EXCEPTIONS = {
    ("tests/waiting.py", "until"): "how tests wait",
    ("tests/waiting.py", "until_async"): "how tests wait",
    ("tests/browser/watching.py", "until"): "how tests wait while a page goes on",
    ("tests/cluster/test_cache.py", "test_a_change_wakes_and_a_status_count_does_not"): (
        "nothing tells that no change is under way any more; a pause that is too short wakes once more"
    ),
    ("tests/cluster/test_conventions.py", "test_a_connection_that_rests_between_two_sessions_is_not_closed"): (
        "a server would close it after five seconds; a longer rest does no harm"
    ),
    ("tests/cluster/test_endless_answers.py", "often"): "a server that goes on until its client gives up",
}
_PAUSES = {"sleep", "wait_for_timeout"}
_CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "time_ns"}


def faults_of_all() -> list[str]:
    """A line for each place."""
    lines, used = [], set()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(PROOFS):
            continue
        for number, function, what in faults(ast.parse(path.read_bytes())):
            if (name, function) in EXCEPTIONS:
                used.add((name, function))
            else:
                lines.append(f"{name}:{number}: {what}; wait for an event (tests/waiting.py) or pass a clock in")
    return lines + [
        f"tests/elapsed_time.py: {'.'.join(key)} needs no exception" for key in EXCEPTIONS if key not in used
    ]


def faults(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, outermost function or method, and what is wrong there."""
    for function in _functions(tree):
        times = _times(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Compare) and _is_time(node, times):
                yield node.lineno, function.name, "compares times that have passed"
            elif isinstance(node, ast.Call) and _name(node.func) in _PAUSES and not _is_zero(node.args[:1]):
                yield node.lineno, function.name, "sleeps"


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _functions(child)


def _times(function: ast.AST) -> set[str]:
    """The names that a clock's time, or what is worked out of one, is given to."""
    times: set[str] = set()
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr)]
    for _ in assigned:
        for node in assigned:
            if _is_time(node.value, times):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
                times |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return times


def _is_time(node: ast.AST, times: set[str]) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in times)
        or (isinstance(one, ast.Call) and _name(one.func) in _CLOCKS)
        or (isinstance(one, ast.Call) and ast.unparse(one.func) == "time.time")
        for one in ast.walk(node)
    )


def _name(function: ast.AST) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_zero(arguments: list[ast.expr]) -> bool:
    return [ast.unparse(argument) for argument in arguments] == ["0"]
