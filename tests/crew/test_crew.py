"""A short form of the crew on a running installation: gated on counts alone, never on milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.watching import chromium
from tests.crew.book import KINDS
from tests.crew.ledger import STOPPED
from tests.crew.run import ROOT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(720),
    pytest.mark.skipif(chromium() is None and not os.environ.get("CI"), reason="no Chromium: set CHROMIUM"),
]


def test_no_promise_is_broken_and_no_edit_is_lost_while_people_lean_on_it(tmp_path: Path) -> None:
    """In a process of its own: it becomes nice, and the browsers' event loops stay out of this one."""
    command = [sys.executable, "-m", "tests.crew", "short", "--results", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=700, check=False)
    print(ran.stdout)
    assert (tmp_path / "short.json").exists(), ran.stderr[-4000:]
    told = json.loads((tmp_path / "short.json").read_text())
    assert told["failings"] == []
    counts = told["promises"]
    assert all(counts[kind]["kept"] >= 1 for kind in KINDS), counts
    assert set(told["troubles"]["counted"]) <= {STOPPED}
