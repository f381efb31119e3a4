"""What a plugin and an action are, and how they declare their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

if TYPE_CHECKING:
    from scheduler_core.framework.session import Session
    from scheduler_core.state.task_class import TaskClass


class Argument(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One argument of a plugin or an action.

    Attributes:
        name: as written in the policy file.
        type: ``bool``, ``int``, ``float``, ``str``, ``list`` (of strings) or ``map`` (string to string).
        default: value when the file says nothing.
        minimum, maximum: bounds of a number, both included; None = open.
        choices: the words that a ``str`` (or the values of a ``map``) may be; empty = any.
        doc: one line for the reference page.
        aliases: other spellings that are accepted.
    """

    name: str
    type: str
    default: Any
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    doc: str = ""
    aliases: tuple[str, ...] = ()


class Plugin:
    """Base of all plugins: a method named like an extension point is registered for it.

    A plugin object lives for one session. It reads the session's tables and never changes them; what it answers is
    combined with the others by :mod:`scheduler_core.framework.combine`.

    Attributes:
        name: as written in the policy file.
        arguments: what it declares; values arrive checked and complete.
        not_built: arguments that Volcano has and this plugin does not have yet.
        gangs_fall_whole: its presence means that reclaim takes gangs whole (contracts 3.2).
    """

    name: ClassVar[str]
    arguments: ClassVar[tuple[Argument, ...]] = ()
    not_built: ClassVar[tuple[str, ...]] = ()
    gangs_fall_whole: ClassVar[bool] = False

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.values = with_defaults(self.arguments, arguments)
        self.session: Session

    def open(self, session: Session) -> None:
        """Called once when the session opens, in the order of the tiers."""
        self.session = session

    def volatile(self, cls: TaskClass) -> bool:
        """True when the answers for a class depend on placements beyond what a node's own rows show.

        Predicates and scores of such a class are asked for anew after each change (host ports, pod affinity).
        """
        return False


class Action:
    """Base of all actions: one step of a session.

    Attributes:
        name: as written in the policy file.
        arguments: what it declares (``configurations`` of the policy file).
    """

    name: ClassVar[str]
    arguments: ClassVar[tuple[Argument, ...]] = ()

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.values = with_defaults(self.arguments, arguments)

    def execute(self, session: Session) -> None:
        """Do the step."""
        raise NotImplementedError


def with_defaults(declared: tuple[Argument, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values over the declared defaults."""
    return {**{argument.name: argument.default for argument in declared}, **given}
