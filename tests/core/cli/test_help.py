"""A question of how to call the engine does not wait for its compiler."""

import subprocess
import sys

ASK = """
import runpy, sys
sys.argv = ["scheduler_core", *sys.argv[1:]]
try:
    runpy.run_module("scheduler_core", run_name="__main__")
except SystemExit:
    pass
print(sorted({"numba", "numpy"} & sys.modules.keys()), file=sys.stderr)
"""


def test_help_loads_neither_arrays_nor_a_compiler():
    done = subprocess.run(
        [sys.executable, "-c", ASK, "--help"], capture_output=True, text=True, check=True, timeout=300
    )
    assert "usage: python -m scheduler_core" in done.stdout
    assert done.stderr.strip() == "[]"
