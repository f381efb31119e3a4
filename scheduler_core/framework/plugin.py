"""What a plugin and an action are, and how they declare their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from scheduler_core.framework.extension_points import ExtensionPoints

if TYPE_CHECKING:
    from scheduler_core.framework.extender_client import ExtenderClient
    from scheduler_core.framework.forms import Form
    from scheduler_core.framework.session import Session
    from scheduler_core.state.task_class import TaskClass


class Argument(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One argument of a plugin or an action.

    Attributes:
        name: as written in the policy file. A name that ends in a placeholder, ``binpack.resources.<name>``, matches
            any key that begins so; its value is then a mapping from the text of the placeholder, ``{}`` by default.
        type: ``bool``, ``int``, ``float``, ``str``, ``list`` (of strings), ``map`` (string to string), ``weights``
            (name to number, or a list of ``{name, weight}``) or ``records`` (a list of mappings with ``fields``).
        default: value when the file says nothing. minimum, maximum: bounds of a number, both included; None = open.
        choices: the words that a ``str`` (or the values of a ``map``) may be; empty = any.
        doc: one line for the reference page. aliases: other spellings that are accepted.
        fields: what each entry of ``records`` holds; every field must be there."""

    name: str
    type: str
    default: Any
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    doc: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[Argument, ...] = ()

    @property
    def stem(self) -> str:
        """The beginning of every key that a name with a placeholder matches; empty for a plain name."""
        return self.name[: self.name.index("<")] if self.name.endswith(">") and "<" in self.name else ""


def number(name: str, default: float, bounds: tuple[float, float], doc: str) -> Argument:
    """An argument that is a number within bounds: a whole one where its default is one."""
    return Argument(
        name=name, type=type(default).__name__, default=default, minimum=bounds[0], maximum=bounds[1], doc=doc
    )


def switch(name: str, default: bool, doc: str) -> Argument:
    """An argument that is on or off."""
    return Argument(name=name, type="bool", default=default, doc=doc)


class Plugin(ExtensionPoints):
    """Base of all plugins: one that has a method of :class:`ExtensionPoints` takes part at that point.

    A plugin object lives for one session. It reads the session's tables and never changes them; what it answers is
    combined with the others by :mod:`scheduler_core.framework.combine`.

    Attributes:
        name: as written in the policy file. arguments: what it declares; values arrive checked and complete.
        not_built: arguments that Volcano has and this plugin does not have yet.
        gangs_fall_whole: its presence means that reclaim takes gangs whole (contracts 3.2).
        keeps_minimum: where it says when gangs are ready, none starts with fewer members than minMember.
        guards: extension points about victims at which it is asked even below the tier that has decided: what protects
            the system, a queue's line or a service does not depend on the plugin's tier (semantics 1.5).
        excludes: (switch, plugin) pairs: with the switch on (empty = always) that plugin cannot be in the same policy.
        switches: what its entry in the policy turned on or off, by switch; set before :meth:`open`.
        compares_queues: the place of a queue depends on what other queues use; settled by the end of :meth:`open`."""

    name: ClassVar[str]
    arguments: ClassVar[tuple[Argument, ...]] = ()
    not_built: ClassVar[tuple[str, ...]] = ()
    gangs_fall_whole: ClassVar[bool] = False
    keeps_minimum: ClassVar[bool] = False
    guards: ClassVar[frozenset[str]] = frozenset()
    excludes: ClassVar[tuple[tuple[str, str], ...]] = ()
    switches: Mapping[str, bool] = {}
    compares_queues: bool = False

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.values = with_defaults(self.arguments, arguments)
        self.session: Session

    def open(self, session: Session) -> None:
        """Called once when the session opens, in the order of the tiers."""
        self.session = session

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        """Refuse arguments that only together mean nothing; called when a policy is read. Raises ValueError: the text
        says what would be right."""

    def connect(self, extenders: ExtenderClient | None) -> None:
        """Called before :meth:`open` with what the host lends to ask services outside, None = nothing."""

    def remember(self) -> dict[str, float]:
        """When something last happened that sessions to come must know of, seconds since the epoch by a key of its own.
        Comes back as ``session.memory.acted``, and is forgotten unless it is said again."""
        return {}

    def volatile(self, cls: TaskClass) -> bool:
        """True when the answers for a class depend on placements beyond what a node's own rows show. Predicates and
        scores of such a class are asked for anew after each change (host ports, pod affinity)."""
        return False

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """What the plugin's function at an extension point comes to in arrays; None = it must be called. See
        :mod:`scheduler_core.framework.forms`. A plugin without forms is right, only slower on large clusters."""
        return None


class Action:
    """Base of all actions: one step of a session. ``name``: as written in the policy file. ``arguments``: what it
    declares (``configurations`` of the policy file)."""

    name: ClassVar[str]
    arguments: ClassVar[tuple[Argument, ...]] = ()

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.values = with_defaults(self.arguments, arguments)

    def execute(self, session: Session) -> None:
        raise NotImplementedError


def with_defaults(declared: tuple[Argument, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values over the declared defaults."""
    return {**{argument.name: argument.default for argument in declared}, **given}
