"""The scheduler's policy: actions in order, plugins in tiers."""

from typing import Any

import msgspec


class PluginOption(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One plugin of a tier. ``switches``: ``enableX``/``enabledX`` keys that were set, by extension point name in snake
    case (``reclaimable``). ``arguments``: checked against the plugin's declared arguments, with defaults filled in."""

    name: str
    switches: dict[str, bool] = {}
    arguments: dict[str, Any] = {}


class Profile(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Tiers of its own for the pods of one ``schedulerName``."""

    scheduler: str
    tiers: tuple[tuple[PluginOption, ...], ...]


class Policy(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A parsed ``volcano-scheduler.conf``.

    Attributes:
        actions: names in order. tiers: plugins that vote together, the first tier first.
        profiles: tiers for the pods of certain schedulers, in the order in which they decide; after ``tiers``.
        action_arguments: from ``configurations``, by action. compatibility: ``""`` or ``"volcano"``.
        source: the text it was read from.
        warnings: what in it has no effect, one sentence each (only with ``compatibility: volcano``)."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    profiles: tuple[Profile, ...] = ()
    action_arguments: dict[str, dict[str, Any]] = {}
    compatibility: str = ""
    source: str = ""
    warnings: tuple[str, ...] = ()
