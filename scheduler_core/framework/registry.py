"""Which names of plugins and actions are known: built in, added by entry points, or Volcano's and not built yet."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from scheduler_core.framework.extension_points import check_points
from scheduler_core.framework.plugin import Action, Argument, Plugin
from scheduler_core.model.errors import BadInput

PLUGIN_GROUP = "scheduler_core.plugins"
ACTION_GROUP = "scheduler_core.actions"

# Plugins that mean something (upstream Volcano, the founding documents) but are not built here yet.
NOT_BUILT: frozenset[str] = frozenset({"network-topology-aware", "pytorch", "resource-strategy-fit"})


class Registry(NamedTuple):
    """Plugins and actions by name. ``broken``: why an entry point adds none, by "plugin" or "action" and the name; only
    a policy that names it is refused."""

    plugins: dict[str, type[Plugin]]
    actions: dict[str, type[Action]]
    broken: dict[tuple[str, str], BadInput]


def with_entry_points(plugins: dict[str, type[Plugin]], actions: dict[str, type[Action]]) -> Registry:
    """The built-in tables and what installed packages add to them."""
    found = Registry(dict(plugins), dict(actions), {})
    _add(found.plugins, found.broken, PLUGIN_GROUP, Plugin)
    _add(found.actions, found.broken, ACTION_GROUP, Action)
    return found


def _add(
    table: dict[str, Any], broken: dict[tuple[str, str], BadInput], group: str, kind: type[Plugin] | type[Action]
) -> None:
    built_in, word = frozenset(table), kind.__name__.lower()
    for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
        try:
            if point.name in table or (word, point.name) in broken:
                raise BadInput("duplicate_entry_point", "the name is taken", hint="give it another name")
            table[point.name] = _loaded(point, kind)
        except BadInput as error:
            package = f" of package {point.dist.name}" if point.dist is not None else ""
            message = f"{word} {point.name!r} ({point.value}{package}): {error.message}"
            hint = error.hint or "mend or uninstall the package"
            broken[word, point.name] = BadInput(error.code, message, value=point.name, hint=hint)
            if point.name not in built_in:
                table.pop(point.name, None)


def _loaded(point: EntryPoint, kind: type[Plugin] | type[Action]) -> type[Plugin] | type[Action]:
    """The class of an entry point. Raises BadInput: it cannot be loaded, is no such class, or declares what can only be
    a mistake."""
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        raise BadInput("bad_entry_point", f"cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, kind)):
        raise BadInput("bad_entry_point", f"it is not a subclass of {kind.__module__}.{kind.__name__}")
    if not isinstance(getattr(loaded, "name", None), str):
        raise BadInput("bad_entry_point", "the class has no name", hint=f"write name = {point.name!r} in it")
    if not (isinstance(loaded.arguments, tuple) and all(isinstance(one, Argument) for one in loaded.arguments)):
        hint = "write arguments = (Argument(...),) with a comma behind each"
        raise BadInput("bad_entry_point", "its arguments are no tuple of Argument", hint=hint)
    if issubclass(loaded, Plugin):
        check_points(loaded)
    return loaded
