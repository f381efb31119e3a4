"""Which names of plugins and actions are known: built in, added by entry points, or Volcano's and not built yet."""

from importlib.metadata import entry_points
from typing import TypeVar

from scheduler_core.framework.extension_points import check_points
from scheduler_core.framework.plugin import Action, Plugin
from scheduler_core.model.errors import BadInput

_T = TypeVar("_T")

PLUGIN_GROUP = "scheduler_core.plugins"
ACTION_GROUP = "scheduler_core.actions"

# Names that mean something (upstream Volcano, the founding documents) but are not built here yet.
KNOWN_PLUGINS_NOT_BUILT: frozenset[str] = frozenset({"network-topology-aware", "resource-strategy-fit"})
KNOWN_ACTIONS_NOT_BUILT: frozenset[str] = frozenset()


def with_entry_points(
    plugins: dict[str, type[Plugin]], actions: dict[str, type[Action]]
) -> tuple[dict[str, type[Plugin]], dict[str, type[Action]]]:
    """The built-in tables and what installed packages add to them. Raises BadInput: an added name is taken, the object
    is no plugin (action) class, or its methods are mistaken."""
    all_plugins, all_actions = dict(plugins), dict(actions)
    for point in sorted(entry_points(group=PLUGIN_GROUP), key=lambda p: (p.name, p.value)):
        loaded = point.load()
        if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
            raise BadInput("bad_entry_point", f"{point.value} is not a plugin class", value=point.value)
        check_points(loaded)
        _add(all_plugins, point.name, loaded, point.value)
    for point in sorted(entry_points(group=ACTION_GROUP), key=lambda p: (p.name, p.value)):
        loaded = point.load()
        if not (isinstance(loaded, type) and issubclass(loaded, Action)):
            raise BadInput("bad_entry_point", f"{point.value} is not an action class", value=point.value)
        _add(all_actions, point.name, loaded, point.value)
    return all_plugins, all_actions


def _add(table: dict[str, _T], name: str, loaded: _T, value: str) -> None:
    if name in table:
        raise BadInput(
            "duplicate_entry_point", f"{value} wants the name {name!r}, which is taken", value=name, hint="rename it"
        )
    table[name] = loaded
