"""Volcano's scheduler, controllers and webhooks for tests: built once from its Go module, and kept outside the tree.

`python -m tests.volcano.build` builds them by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.kube import binaries as kube
from tests.kube.binaries import NoBinaries

SOURCES = Path(__file__).with_name("binaries")
MODULE, TYPES = "volcano.sh/volcano", "volcano.sh/apis"
# The newest version of the module of types that is published as such.
TYPES_VERSION = "v1.14.0"
NAMES = ("controller-manager", "scheduler", "webhook-manager")
# What the newer scheduler asks of these types beyond that version.
_ADDED = Path("pkg/apis/scheduling/v1beta1")
_DEFINITIONS = Path("config/crd/volcano/bases")


@dataclass(frozen=True)
class Volcano:
    """Where the programs and their definitions are."""

    folder: Path

    def program(self, name: str) -> Path:
        return self.folder / name

    @property
    def definitions(self) -> Path:
        return self.folder / "crds"

    @property
    def complete(self) -> bool:
        return all(os.access(self.folder / name, os.X_OK) for name in NAMES) and self.definitions.is_dir()


def volcano_version() -> str:
    """The version that is built, ``v1.15.1``."""
    found = re.search(rf"^\s*{MODULE} (v\S+)", (SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert found
    return found[1]


def find() -> Volcano | None:
    """What was built before, None where nothing was."""
    built = Volcano(_home())
    return built if built.complete else None


def find_or_build() -> Volcano:
    """As :func:`find`; builds where there is nothing. Of several processes one builds and the others wait.

    Raises:
        NoBinaries: it cannot be built; says why.
    """
    target = _home()
    target.parent.mkdir(parents=True, exist_ok=True)
    with kube.only_one(target.parent / "lock"):
        if not Volcano(target).complete:
            _build(target)
    return Volcano(target)


def _home() -> Path:
    digest = hashlib.sha256(TYPES_VERSION.encode())
    for file in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(SOURCES)}\0".encode() + file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tidesched" / "volcano" / f"{volcano_version()}-{platform.machine()}-{digest.hexdigest()[:12]}"


def _build(target: Path) -> None:
    go = kube.go_program(target.parent)
    kube.say(f"building Volcano {volcano_version()}, once, with {go}")
    environment = kube.environment() | {"GOFLAGS": "-mod=mod"}
    with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as name:
        folder = Path(name)
        sources, made = folder / "sources", folder / "made"
        sources.mkdir()
        for file in ("go.mod", "go.sum"):
            shutil.copy(SOURCES / file, sources)
        types = _module(go, f"{TYPES}@{TYPES_VERSION}", folder, environment)
        shutil.copytree(types, sources / "apis", copy_function=shutil.copy)
        for one in (sources / "apis").rglob("*"):
            one.chmod(0o755 if one.is_dir() else 0o644)
        for file in (SOURCES / "added").glob("*.go"):
            shutil.copy(file, sources / "apis" / _ADDED)
        made.mkdir()
        packages = [f"{MODULE}/cmd/{program}" for program in NAMES]
        command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-gcflags=all=-dwarf=false"]
        _run([*command, "-o", f"{made}/", *packages], sources, environment)
        whole = _module(go, f"{MODULE}@{volcano_version()}", folder, environment)
        shutil.copytree(whole / _DEFINITIONS, made / "crds", copy_function=shutil.copy)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    kube.say(f"built: {target}")


def _module(go: str, module: str, folder: Path, environment: dict[str, str]) -> Path:
    """Where the downloaded module is."""
    return Path(json.loads(_run([go, "mod", "download", "-json", module], folder, environment))["Dir"])


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoBinaries(f"{' '.join(command[:3])} … failed:\n{done.stderr[-2000:]}{done.stdout[-500:]}")
    return done.stdout


if __name__ == "__main__":
    sys.stdout.write(f"{find_or_build().folder}\n")
