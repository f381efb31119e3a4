"""Calling a compiled function without having the types of its arguments looked up each time. For a function that takes
many arrays in bundles this look-up costs ten times what the call does."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def direct(function: F) -> F:
    """The code that the function was compiled to, where it was for one set of types only; else the function itself.
    Only for arguments of the very types, contiguous arrays included, that the function was called with before: they are
    not checked any more. Takes no keyword arguments."""
    versions = getattr(function, "overloads", None)
    if versions is None or len(versions) != 1:
        return function
    return cast("F", next(iter(versions.values())).entry_point)
