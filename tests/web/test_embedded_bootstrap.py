"""The step before everything: an environment where there is none, and a clear message where there can be none."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidesched_web.env import BASE_DIR

SCRIPT = Path("tidesched_web", "embedded", "bootstrap.py")
PRETEND_OLD = """
import runpy, sys
sys.version_info = (3, 9, 2, "final", 0)
sys.argv = [{script!r}, "run"]
runpy.run_path({script!r}, run_name="__main__")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the script and nothing to install."""
    (tmp_path / SCRIPT).parent.mkdir(parents=True)
    shutil.copy(BASE_DIR / SCRIPT, tmp_path / SCRIPT)
    (tmp_path / "requirements").mkdir()
    for lock in ("uv.txt", "base.txt"):
        (tmp_path / "requirements" / lock).write_text("# nothing\n")
    return tmp_path


def test_an_old_python_is_told_so(checkout: Path) -> None:
    code = PRETEND_OLD.format(script=str(checkout / SCRIPT))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; python3 here is 3.9.2" in done.stderr
    assert "make up PYTHON=" in done.stderr
    assert not (checkout / ".venv").exists()


def test_the_script_is_readable_for_an_old_python() -> None:
    import ast

    ast.parse((BASE_DIR / SCRIPT).read_text(), feature_version=(3, 6))


def test_a_python_without_venv_is_told_what_to_install(checkout: Path) -> None:
    broken = checkout / "broken"
    broken.mkdir()
    (broken / "venv.py").write_text("raise ImportError('No module named ensurepip')")
    done = subprocess.run(
        [sys.executable, str(checkout / SCRIPT), "run"],
        env=os.environ | {"PYTHONPATH": str(broken)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "its module venv is not installed" in done.stderr
    assert "python3-venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (checkout / ".venv").exists()


def test_each_step_is_done_once(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(checkout / SCRIPT))
    for _ in range(2):
        script["environment"]()
        script["dependencies"]("base", ["base"])
    assert [line.split(" (")[0] for line in capsys.readouterr().out.splitlines() if "done" in line] == [
        "  done virtual environment in .venv",
        "  done Python packages of requirements/base.txt",
    ]
    (checkout / "requirements" / "base.txt").write_text("# nothing else\n")
    script["dependencies"]("base", ["base"])
    assert "done Python packages" in capsys.readouterr().out
    # An environment whose Python is gone is made anew.
    (checkout / ".venv" / "bin" / "python").unlink()
    script["environment"]()
    assert "done virtual environment" in capsys.readouterr().out


def test_packages_come_by_uv_and_where_it_cannot_by_pip(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(checkout / SCRIPT))
    script["environment"]()
    python = checkout / ".venv" / "bin" / "python"
    package = next((checkout / ".venv" / "lib").iterdir()) / "site-packages" / "uv"
    package.mkdir()
    (package / "__main__.py").write_text("import sys; print('uv:', *sys.argv[1:])")
    script["dependencies"]("base", ["base"])
    uv = [line for line in capfd.readouterr().out.splitlines() if line.startswith("uv:")]
    lock = checkout / "requirements" / "base.txt"
    assert uv == [f"uv: pip install --quiet --python {python} --require-hashes --no-deps --only-binary=:all: -r {lock}"]
    (package / "__main__.py").write_text("raise SystemExit('no index')")
    lock.write_text("# other\n")
    script["dependencies"]("base", ["base"])
    assert "no index" in capfd.readouterr().err
    lock.write_text("no-hash\n")
    with pytest.raises(SystemExit):
        script["dependencies"]("base", ["base"])
    assert "neither uv nor pip could install requirements/base.txt" in capfd.readouterr().err


@pytest.mark.parametrize("word", ["up", "down"])
def test_a_broken_install_is_told_so(word: str, tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError(\"No module named 'msgspec'\")")
    done = subprocess.run(
        [sys.executable, "-m", "tidesched_web.embedded", word],
        cwd=BASE_DIR,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: the installation is broken: No module named 'msgspec'\nhint: run `make clean`, then `make up`\n"
    )
