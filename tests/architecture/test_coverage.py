"""Every command is run by a test: as a word of its own in a call.

Addresses: `tests/matrix`; plugins and actions: `tests/golden`.
"""

import ast
from functools import cache

from django.core.management import get_commands

from tests.architecture import sources


@cache
def words_of_calls() -> set[str]:
    """The texts that tests hand over as an argument, or as an entry of a list or tuple of one."""
    found = set()
    for path in sources.committed():
        if path.suffix != ".py" or not path.is_relative_to(sources.ROOT / "tests"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.List) else ()
            found |= {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return found


def test_every_command_is_run_by_a_test() -> None:
    own = {name for name, app in get_commands().items() if str(app).startswith("tidesched_web.")}
    assert own - words_of_calls() == set()
