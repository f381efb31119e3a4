"""Where the programs are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube import binaries


def test_a_folder_that_is_named_is_used_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(binaries.NoBinaries, match="KUBEBUILDER_ASSETS"):
        binaries.find()
    for name in binaries.NAMES:
        (tmp_path / name).touch(mode=0o755)
    found = binaries.find()
    assert found is not None
    assert found.apiserver == tmp_path / "kube-apiserver"


def test_what_was_built_is_kept_outside_the_tree_by_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert binaries.find() is None
    home = binaries._home()
    assert home.is_relative_to(tmp_path)
    assert binaries.kubernetes_version() in home.name
