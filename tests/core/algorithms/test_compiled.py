"""Kept code is that of the files as they are: the module's own, and those that it imports."""

from __future__ import annotations

import ast

from scheduler_core.algorithms import compiled

TURNS = "scheduler_core.framework.kernels.turns"


def test_a_module_is_known_by_its_files_and_those_of_its_imports(monkeypatch, tmp_path):
    before = compiled.fingerprint(TURNS)
    assert compiled.fingerprint(TURNS) == before
    own = compiled._file_of

    def changed(module):
        def file_of(name):
            if name != module:
                return own(name)
            copy = tmp_path / "changed.py"
            copy.write_text(own(name).read_text() + "\n# changed\n")
            return copy

        monkeypatch.setattr(compiled, "_file_of", file_of)
        found = compiled.fingerprint(TURNS)
        monkeypatch.setattr(compiled, "_file_of", own)
        return found

    assert changed("scheduler_core.framework.kernels.moves") != before
    assert changed("scheduler_core.algorithms.scoring") != before
    assert changed("scheduler_core.state.status") != before
    assert changed("scheduler_core.plugins.gang") == before


def test_imports_are_those_that_happen_when_the_module_is_imported():
    tree = ast.parse(
        "from scheduler_core.a import b\n"
        "import scheduler_core.c\n"
        "import numpy\n"
        "def f():\n    from scheduler_core.d import e\n"
    )
    assert list(compiled._imported(tree)) == ["scheduler_core.a", "scheduler_core.a.b", "scheduler_core.c"]
