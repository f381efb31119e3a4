"""The names that a policy may use."""

from functools import lru_cache

import msgspec

from scheduler_core.actions import ACTIONS
from scheduler_core.framework.plugin import Action, Plugin
from scheduler_core.framework.registry import KNOWN_ACTIONS_NOT_BUILT, KNOWN_PLUGINS_NOT_BUILT, with_entry_points
from scheduler_core.plugins import PLUGINS


class Names(msgspec.Struct, frozen=True):
    """Plugins and actions by name, and the names that are known but not built."""

    plugins: dict[str, type[Plugin]]
    actions: dict[str, type[Action]]
    plugins_not_built: frozenset[str]
    actions_not_built: frozenset[str]


@lru_cache(maxsize=1)
def known_names() -> Names:
    """The built-in names and those that installed packages add by entry points."""
    plugins, actions = with_entry_points(PLUGINS, ACTIONS)
    return Names(
        plugins, actions, frozenset(KNOWN_PLUGINS_NOT_BUILT) - plugins.keys(),
        frozenset(KNOWN_ACTIONS_NOT_BUILT) - actions.keys(),
    )  # fmt: skip
