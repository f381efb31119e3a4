"""Plugins and actions that packages add: what they raise names them, and an answer that is none of its extension point
is refused. Built-in ones are trusted; to look at each of their answers would cost time."""

from collections.abc import Callable, Iterable
from functools import cache, wraps
from math import isfinite
from traceback import walk_tb
from types import FrameType, NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from scheduler_core.framework import combine, demand, extension_points, pod_points
from scheduler_core.framework.extension_points import ExtensionPoints
from scheduler_core.framework.plugin import Action, Plugin
from scheduler_core.model import pod, resources
from scheduler_core.model.errors import BadInput, BrokenInvariant
from scheduler_core.state import status, task_class

_P = ParamSpec("_P")
_R = TypeVar("_R")
_ARRAY, _FLOAT, _BOOL = np.ndarray, np.dtype(np.float64), np.dtype(np.bool_)
# Where the names in the types of answers are from.
_MODULES = (status, task_class, resources, pod, demand, combine, pod_points, extension_points)
# What is as good as the type of an answer.
_ALSO: dict[Any, tuple[type, ...]] = {bool: (np.bool_,), int: (np.integer,), float: (int, np.number), tuple: (list,)}


def is_own(kind: type) -> bool:
    """Whether a class is from outside of the engine."""
    return kind.__module__.partition(".")[0] != "scheduler_core"


def names_own_plugins(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """What an own plugin or action raises in the function becomes bad input that says which one and where."""

    @wraps(function)
    def call(*given: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*given, **named)
        except (BadInput, BrokenInvariant):
            raise
        except Exception as error:
            lines = walk_tb(error.__traceback__)
            own = [(owner, frame, line) for frame, line in lines if (owner := _owner(frame)) is not None]
            if not own:
                raise
            owner, frame, line = own[-1]
            method = next(frame.f_code.co_name for first, frame, _ in own if first is owner)
            place = f"{frame.f_globals['__name__']}, line {line}"
            message = f"{_method(owner, method)}: {type(error).__name__}: {error} ({place})"
            hint = "correct it, or take it out of the policy"
            raise BadInput("plugin_error", message, value=owner.name, hint=hint) from error

    return call


def _owner(frame: FrameType) -> type[Plugin] | type[Action] | None:
    """The class of the own plugin or action of which the frame is a method."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    kind = first if isinstance(first, type) else type(first)
    return kind if issubclass(kind, Plugin | Action) and is_own(kind) else None


def _method(owner: type[Plugin] | type[Action], name: str) -> str:
    return f"your {'plugin' if issubclass(owner, Plugin) else 'action'} {owner.name!r}, method {name}"


def function_at(plugin: Plugin, point: str, *, nodes: int) -> Callable[..., Any]:
    """The plugin's function at an extension point; answers of an own one are looked at. ``nodes``: of the cluster."""
    method: Callable[..., Any] = getattr(plugin, point)
    if not is_own(type(plugin)):
        return method
    right_of = _ARRAYS.get(point)
    types = _types(point) if right_of is None else ()

    def look(answer: Any, *subject: Any) -> Any:
        if point == "predicate" and isinstance(answer, Iterable) and not isinstance(answer, tuple):
            answer = list(answer)
        declared = vars(ExtensionPoints)[point].__annotations__["return"]
        right = declared if right_of is None else right_of(answer, nodes, *subject)
        if right:
            message = f"{_method(type(plugin), point)}: answers {_shown(answer)}, not {right}"
            hint = "docs/plugins.md has the answers of all extension points"
            raise BadInput("bad_answer", message, value=plugin.name, hint=hint)
        return answer.astype(_FLOAT, copy=False) if isinstance(answer, np.ndarray) else answer

    def ask(*subject: Any) -> Any:
        answer = method(*subject)
        return answer if isinstance(answer, types) else look(answer, *subject)

    # The usual answers to the two questions that are asked most are seen to be right in less time.
    def node_order(cls: task_class.TaskClass, where: Any) -> Any:
        answer = method(cls, where)
        if type(answer) is _ARRAY:
            if type(where) is slice:  # with an end: one node
                right = answer.size == 1 and where.stop is not None and isfinite(answer.item())
            else:
                right = answer.dtype is _FLOAT and answer.shape == where.shape and isfinite(answer.dot(answer))
            if right:
                return answer
        return look(answer, cls, where)

    def task_predicate(task: int) -> Any:
        answer = method(task)
        right = type(answer) is tuple and len(answer) == 2 and type(answer[0]) is str
        if right and type(answer[1]) is _ARRAY and answer[1].dtype is _BOOL and answer[1].shape == (nodes,):
            return answer
        return look(answer, task)

    quick: dict[str, Any] = {"node_order": node_order, "task_predicate": task_predicate}
    function = quick.get(point, ask)
    function.__self__ = plugin  # as a bound method has it
    return function  # type: ignore[no-any-return]  # it is Any so that __self__ can be set on it


@cache
def _types(point: str) -> tuple[type, ...]:
    """The types that an answer without arrays may have."""
    names = {name: value for module in _MODULES for name, value in vars(module).items()}
    hint = get_type_hints(vars(ExtensionPoints)[point], names)["return"]
    kinds = [get_origin(part) or part for part in (get_args(hint) if isinstance(hint, UnionType) else (hint,))]
    return (object,) if hint is NoneType else (*kinds, *(also for kind in kinds for also in _ALSO.get(kind, ())))


# What would be right instead of an answer with arrays, empty if it is.


def _masks(answer: Any, nodes: int, _: Any) -> str:
    if not isinstance(answer, list | tuple):
        return "an iterator of (label, mask)"
    return next((right for one in answer if (right := _mask(() if one is None else one, nodes))), "")


def _mask(answer: Any, nodes: int, *_: Any) -> str:
    if answer is None:
        return ""
    label, *masks = answer if isinstance(answer, tuple | list) and answer else (None,)
    if isinstance(label, str) and 0 < len(masks) < 3 and all(_is_array(mask, "b", nodes) for mask in masks):
        return ""
    return f"(label, mask) or (label, mask now, mask later), a mask is a bool array of {nodes} nodes"


def _score(answer: Any, nodes: int, _: Any, where: Any = slice(None)) -> str:
    count = len(range(nodes)[where]) if isinstance(where, slice) else len(where)
    good = _is_array(answer, "fiu", count) and np.isfinite(answer).all()
    return "" if good else f"an array of {count} numbers, none of them infinite or NaN"


_ARRAYS: dict[str, Callable[..., str]] = {
    "predicate": _masks,
    "task_predicate": _mask,
    "node_order": _score,
    "task_node_order": lambda answer, nodes, task: "" if answer is None else _score(answer, nodes, task),
    "normalize_score": lambda answer, nodes, task, _: _score(answer, nodes, task),
}


def _is_array(value: Any, kinds: str, count: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.shape == (count,)


def _shown(answer: Any) -> str:
    if isinstance(answer, np.ndarray):
        odd = ", not all of them finite" if answer.dtype.kind == "f" and not np.isfinite(answer).all() else ""
        return f"an array of {answer.dtype}, shape {answer.shape}{odd}"
    if isinstance(answer, tuple | list) and len(answer) < 4:
        return f"({', '.join(map(_shown, answer))})"
    return f"{type(answer).__name__} {answer!r:.60}"
