"""Plugins that exclude each other in one policy."""

from collections.abc import Iterable, Mapping

from scheduler_core.framework.extension_points import POINTS, points_of
from scheduler_core.framework.plugin import Plugin


def find_conflict(entries: Iterable[tuple[type[Plugin], Mapping[str, bool]]]) -> tuple[str, str] | None:
    """The first plugin that refuses another one, with a sentence that says why; None when all go together. ``entries``:
    plugins of a policy with their switches, in order."""
    listed = list(entries)
    names = {plugin.name for plugin, _ in listed}
    for plugin, switches in listed:
        for switch, other in plugin.excludes:
            if other in names and (not switch or switches.get(switch, False)):
                how = f" with its {switch} switch on" if switch else ""
                return plugin.name, f"plugin {plugin.name!r}{how} and plugin {other!r} cannot be in one policy"
    sorters = [plugin.name for plugin, _ in listed if POINTS["queue_sort"] in points_of(plugin)]
    if len(sorters) > 1:
        return sorters[1], f"{sorters[0]} and {sorters[1]} both sort the pods; a policy has one sorter"
    return None
