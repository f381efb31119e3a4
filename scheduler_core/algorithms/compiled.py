"""The one way to compile a function of the engine: ``@compiled`` and its kin below.

Compiled code holds no interpreter lock, so that a heartbeat thread goes on while it runs, and is kept on disk, so that
a process compiles it once for all. The kept code of a module lies in a folder of its own for each state of the files
that the module is made of, its imports and theirs: Numba itself does not notice that a function which another file
calls, or a number that another file holds, has changed."""

import ast
import hashlib
import os
import shutil
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event, types
from numba.core.dispatcher import Dispatcher
from numba.experimental import structref

F = TypeVar("F", bound=Callable[..., Any])

_ENGINE = Path(__file__).parent.parent
# Kept code of so many earlier states of a module, for going back and forth between two versions.
_STATES_KEPT = 3
# Nothing is called by its address in C.
_ALWAYS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
# No counting of references, divisions as the processor makes them.
_LOOP: dict[str, Any] = {**_ALWAYS, "_nrt": False, "error_model": "numpy"}
# What the compiler does beyond this makes nothing here faster, and a third of its time.
numba.config.OPT = type(numba.config.OPT)(1)  # type: ignore[attr-defined]  # as CACHE_DIR below


# What compiled functions are given: for a literal True or -1 Numba would compile them once more.
YES: Any = np.bool_(True)
NO: Any = np.bool_(False)
NONE: Any = np.int64(-1)
ZERO: Any = np.int64(0)

_BRANCHY: set[str] = set()
_FROM_PYTHON: set[Callable[..., Any]] = set()


class _Vectors(event.Listener):
    """Sets, function by function, whether the compiler looks for vectors; it reads a setting of the whole process. Only
    one function is compiled at a time, under the compiler's lock; one that it calls comes in between."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        self._before.append(numba.config.LOOP_VECTORIZE)  # type: ignore[attr-defined]  # as CACHE_DIR below
        branchy = f"{function.__qualname__}{function.__module__}" in _BRANCHY
        numba.config.LOOP_VECTORIZE = 0 if branchy else self._before[0]  # type: ignore[attr-defined]  # the same

    def on_end(self, event: Any) -> None:
        numba.config.LOOP_VECTORIZE = self._before.pop()  # type: ignore[attr-defined]  # the same


event.register("numba:compile", _Vectors())


def compiled(function: F) -> F:
    """Compile on first use, without the interpreter lock, IEEE arithmetic as written, kept on disk."""
    return cast("F", numba.njit(cache=_kept(function.__module__), **_ALWAYS)(function))


def from_python(function: F) -> F:
    """Below one of the next three: Python may call it. What compiled code alone calls has no way in for Python, which
    takes the compiler longer than a small function; ``tests/architecture`` looks for calls that have none."""
    _FROM_PYTHON.add(function)
    return function


def compiled_loop(function: F) -> F:
    """As :func:`compiled`, for loops that make no array: references are not counted, divisions by zero do not raise.
    Several times faster where many arrays come in bundles and small functions pass them on."""
    return _compiled_part(function, forceinline=True)


def compiled_branchy(function: F) -> F:
    """As :func:`compiled_loop`, for code that decides more than it counts: its loops are left as they are. Nothing in
    it is faster in vectors, and looking for some takes the compiler most of its time."""
    _BRANCHY.add(function.__qualname__ + function.__module__)
    return compiled_loop(function)


def compiled_apart(function: F) -> F:
    """As :func:`compiled_loop`, but called and not compiled into its callers: for large parts used in many places."""
    return _compiled_part(function, forceinline=False)


def _compiled_part(function: F, forceinline: bool) -> F:
    alone = function not in _FROM_PYTHON
    options = {"no_cpython_wrapper": alone, "forceinline": forceinline, **_LOOP}
    return cast("F", numba.njit(cache=_kept(function.__module__), **options)(function))


def compiled_inline(function: F) -> F:
    """A small function that compiled ones call; it is compiled into them."""
    return cast("F", numba.njit(nogil=True, inline="always")(function))


def direct(function: F) -> F:
    """The code that the function was compiled to, where it was for one set of types only; else the function itself.
    Only for arguments of the very types, contiguous arrays included, that the function was called with before: they are
    not checked any more. Takes no keyword arguments."""
    versions = getattr(function, "overloads", None)
    if versions is None or len(versions) != 1:
        return function
    return cast("F", next(iter(versions.values())).entry_point)


@compiled_inline
def int64(value: Any) -> Any:
    """A number of 32 bits or a literal as what a compiled function is given elsewhere too."""
    return np.int64(value)


OneAddress = structref.StructRefProxy


@structref.register
class _ObjectType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


def compiled_object(declared: type) -> type:
    """Let compiled functions make objects of a class and read its annotated fields; the engine has one such class."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # as CACHE_DIR below
        return namedtuple(declared.__name__, declared.__annotations__)
    structref.define_constructor(declared, _ObjectType, tuple(declared.__annotations__))
    structref.define_attributes(_ObjectType)
    structref.define_boxing(_ObjectType, declared)
    return declared


class _Heard(event.Listener):
    def __init__(self) -> None:
        self.functions: set[str] = set()

    def on_start(self, event: Any) -> None:
        pass

    def on_end(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        self.functions.add(f"{function.__module__}.{function.__qualname__}")


@contextmanager
def compiled_functions() -> Iterator[set[str]]:
    """Full names of what is compiled meanwhile, in a set that grows."""
    heard = _Heard()
    with event.install_listener("numba:compile", heard):
        yield heard.functions


def compilable() -> int:
    """How many functions of the loaded engine may be compiled; those that are compiled into others stay uncounted."""
    loaded = [module for name, module in sys.modules.items() if name.startswith(_ENGINE.name)]
    return len({id(value) for module in loaded for value in vars(module).values() if _alone(value)})


def _alone(value: object) -> bool:
    return isinstance(value, Dispatcher) and value.targetoptions.get("inline", "never") == "never"


def fingerprint(module: str) -> str:
    """Hash of the files that a module is made of and of what compiles it; 16 hexadecimal digits."""
    digest = hashlib.sha256(f"{sys.version} numba {numba.__version__} numpy {np.__version__}".encode())
    found = {module: _file_of(module)}
    todo = [module]
    while todo:
        for name in _imports(found[todo.pop()]):
            if name not in found:
                found[name] = _file_of(name)
                todo.append(name)
    for name, path in sorted(found.items()):
        if path is not None:
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _imports(path: Path | None) -> tuple[str, ...]:
    """Modules of the engine that a file imports when it is imported, submodules that it names included."""
    return () if path is None else tuple(_imported(ast.parse(path.read_bytes())))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == _ENGINE.name:
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == _ENGINE.name)


@cache
def _file_of(module: str) -> Path | None:
    """The file of a module of the engine; None for a package (it holds no numbers) and for what is no module."""
    path = _ENGINE.parent.joinpath(*module.split(".")).with_suffix(".py")
    return path if path.is_file() else None


def _kept(module: str) -> bool:
    """Let Numba keep code of a module in its folder; False where nothing can be kept."""
    folder = _folder_of(module)
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]  # made at import, unknown to the checker
    return folder is not None


@cache
def _folder_of(module: str) -> Path | None:
    return _cache_folder(f"{module.removeprefix(_ENGINE.name + '.')}-{fingerprint(module)}")


def _cache_folder(name: str) -> Path | None:
    """A folder that can be written: in ``NUMBA_CACHE_DIR``, the user's cache, the temporary folder, or none."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    homes = (
        [Path(given)] if given else [_user_cache(), Path(tempfile.gettempdir()) / f"tidesched-kernels-{os.getuid()}"]
    )
    for home in homes:
        folder = home / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if folder.stat().st_uid == os.getuid() and os.access(folder, os.W_OK):
            _forget_old(home, folder)
            return folder
    return None


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path("~/.cache").expanduser()) / "tidesched" / "kernels"


def _forget_old(home: Path, current: Path) -> None:
    os.utime(current)
    module = current.name.rpartition("-")[0]
    found = [path for path in home.iterdir() if path.is_dir() and path.name.rpartition("-")[0] == module]
    found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[1 + _STATES_KEPT :]:
        shutil.rmtree(path, ignore_errors=True)
