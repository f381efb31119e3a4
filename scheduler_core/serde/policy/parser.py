"""Reads a policy and checks every name and value in it. An unknown action, plugin, switch or argument is an error that
names the nearest known one and its line. With ``compatibility: volcano`` it is a warning and has no effect, as it has
none upstream; an unknown action stays an error there too."""

import re
from collections.abc import Callable
from typing import Any

from scheduler_core.framework.conflicts import find_conflict
from scheduler_core.framework.extension_points import SWITCHES
from scheduler_core.framework.own_plugins import names_own_plugins
from scheduler_core.framework.plugin import Action, Argument, Plugin
from scheduler_core.framework.registry import NOT_BUILT, Registry
from scheduler_core.model.errors import BadInput
from scheduler_core.model.policy import PluginOption, Policy, Profile
from scheduler_core.scheduler import registered
from scheduler_core.serde.policy.arguments import BadEntry, checked, did_you_mean
from scheduler_core.serde.policy.kube_scheduler import KUBE_KIND, translate
from scheduler_core.serde.policy.tree import Field, Source, read_tree
from scheduler_core.serde.text import as_text

DEFAULT_ACTIONS = ("enqueue", "allocate", "backfill")
CONFIG_KEY = "volcano-scheduler.conf"
_TOP_LEVEL = ("actions", "tiers", "profiles", "configurations", "compatibility")
_TOP_LEVEL_NOT_BUILT = ("metrics",)
_TIERS = "tiers: [{plugins: [{name: gang}]}]"
_NOT_BUILT = "leave it out; with 'compatibility: volcano' at the top it is passed over with a warning"
# What belongs further down.
_INSIDE = ("plugins", "name", "arguments")
_LOST = "it belongs inside of tiers; is the indentation lost? tiers: [{plugins: [{name: gang}]}]"
# Volcano spells some switches `enableX` and some `enabledX`; both are understood for each, but where its decisions are
# asked for: there the other spelling has no effect.
_SWITCH = re.compile(r"enabled?(?=[A-Z])")
_SWITCH_BY_STEM = {_SWITCH.sub("", name): switch for name, (switch, _) in SWITCHES.items()}


@names_own_plugins
def parse_policy(text: str | bytes, file: str | None = None, *, faults: list[BadInput] | None = None) -> Policy:
    """Read a ``volcano-scheduler.conf``, a ConfigMap that holds one, or a ``KubeSchedulerConfiguration``.

    Args:
        text: YAML, UTF-8. file: its name, for messages.
        faults: gets everything that is wrong about single names and values, which are then left out; to report all
            of it at once. None = the first one is raised.

    Raises:
        BadInput: with file, line and path of the first thing that cannot be used."""
    source = Source(file)
    plain = as_text(text, file)
    root, inner = _unwrapped(read_tree(plain, source), plain, source)
    if root.value is None:
        raise source.error("empty_policy", "the policy is empty", root, hint="it needs actions and tiers")
    if root.fields is None:
        raise source.error("malformed_policy", "a policy is a mapping with actions and tiers", root)
    if (kind := root.fields.get("kind")) is not None and kind.value == KUBE_KIND:
        root = translate(root, source)
    return _Parser(source, registered(), root, faults).policy(inner)


def _unwrapped(root: Field, text: str, source: Source) -> tuple[Field, str]:
    """The policy inside a ConfigMap, or the text itself."""
    fields = root.fields or {}
    if "kind" not in fields or fields["kind"].value != "ConfigMap":
        return root, text
    data = fields.get("data")
    entries = (data.fields if data else None) or {}
    names = [name for name in entries if name == CONFIG_KEY] or [name for name in entries if name.endswith(".conf")]
    if len(names) != 1 or not isinstance(entries[names[0]].value, str):
        at = data or root
        raise source.error("malformed_policy", f"the ConfigMap holds no text under data.{CONFIG_KEY}", at)
    entry = entries[names[0]]
    return read_tree(entry.value, source, entry.line + 1 if entry.block else entry.line), entry.value


class _Parser:
    """One parse: collects warnings on the way."""

    def __init__(self, source: Source, names: Registry, root: Field, faults: list[BadInput] | None) -> None:
        self.source, self.names, self.root, self.faults = source, names, root, faults
        self.fields: dict[str, Field] = root.fields or {}
        self.warnings: list[str] = []
        self.lenient = self._compatibility() != ""

    def policy(self, text: str) -> Policy:
        for key, field in self.fields.items():
            if key in _TOP_LEVEL_NOT_BUILT:
                self._complain("not_built", f"{key}: known, not built yet", field, hint=_NOT_BUILT)
            elif key not in _TOP_LEVEL:
                lost = key in _INSIDE or key in SWITCHES
                hint = _LOST if lost else did_you_mean(key, _TOP_LEVEL)
                self._complain("unknown_key", f"unknown key {key!r}", field, hint=hint)
        actions = self._actions()
        profiles = self._profiles()
        tiers = self._tiers(self.fields.get("tiers"), self.root) if "tiers" in self.fields or not profiles else ()
        return Policy(
            actions=actions, tiers=tiers, profiles=profiles, action_arguments=self._configurations(),
            compatibility=self._compatibility(), source=text, warnings=tuple(self.warnings),
        )  # fmt: skip

    # --- parts --------------------------------------------------------------------------------------------------------

    def _compatibility(self) -> str:
        field = self.fields.get("compatibility")
        if field is None or field.value in ("", None):
            return ""
        if field.value != "volcano":
            raise self.source.error(
                "bad_value", f"compatibility is 'volcano' or absent, not {field.value!r}", field, hint="volcano"
            )
        return "volcano"

    def _actions(self) -> tuple[str, ...]:
        field = self.fields.get("actions")
        if field is None or field.value is None:
            return DEFAULT_ACTIONS
        value = field.value
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise self.source.error("malformed_policy", "actions is a list of names: 'enqueue, allocate'", field)
        actions: list[str] = []
        for name in filter(None, (name.strip() for name in value)):
            at = Field(name, field.line, field.path)
            if name in actions:
                self._fault("duplicate_action", f"action {name!r} is here twice", at)
            elif self._known("action", name, at, self._fault) is not None:
                actions.append(name)
        if not actions:
            raise self.source.error("malformed_policy", "no action is left to run", field)
        return tuple(actions)

    def _profiles(self) -> tuple[Profile, ...]:
        field = self.fields.get("profiles")
        found: dict[str, Profile] = {}
        for entry in (
            self._list(
                field, "profiles is a list of {schedulerName, tiers}", "profiles: [{schedulerName: …, tiers: […]}]"
            )
            if field
            else []
        ):
            fields = self._mapping(entry, "a profile is a mapping with schedulerName and tiers", "- schedulerName: …")
            for key, part in fields.items():
                if key not in ("schedulerName", "tiers"):
                    hint = did_you_mean(key, ("schedulerName", "tiers"))
                    self._complain("unknown_key", f"unknown key {key!r} of a profile", part, hint=hint)
            named = fields.get("schedulerName")
            if named is None or not isinstance(named.value, str) or not named.value:
                raise self.source.error("malformed_policy", "the profile has no schedulerName", named or entry)
            if named.value in found:
                raise self.source.error("duplicate_profile", f"there are two profiles of {named.value!r}", named)
            found[named.value] = Profile(scheduler=named.value, tiers=self._tiers(fields.get("tiers"), entry))
        return tuple(found.values())

    def _tiers(self, field: Field | None, owner: Field) -> tuple[tuple[PluginOption, ...], ...]:
        if field is None or field.value is None:
            raise self.source.error(
                "malformed_policy",
                "the policy has no tiers" if owner is self.root else "the profile has no tiers",
                field or owner,
                hint=_TIERS,
            )
        tiers: list[tuple[PluginOption, ...]] = []
        seen: dict[str, Field] = {}
        for tier in self._list(field, "tiers is a list of {plugins: [...]}", _TIERS):
            for key, part in self._mapping(
                tier, "a tier is a mapping with plugins", "- plugins: [{name: gang}]"
            ).items():
                if key != "plugins":
                    self._complain("unknown_key", f"unknown key {key!r} in a tier", part, hint="plugins")
            plugins = (tier.fields or {}).get("plugins")
            entries = (
                self._list(plugins, "plugins is a list of {name: ...}", "plugins: [{name: gang}]") if plugins else []
            )
            options = [self._plugin(entry, seen) for entry in entries]
            tiers.append(tuple(option for option in options if option is not None))
        conflict = find_conflict((self.names.plugins[o.name], o.switches) for tier in tiers for o in tier)
        if conflict is not None:
            name, message = conflict
            self._fault("plugin_conflict", message, seen[name], hint="leave one of them out")
        return tuple(tier for tier in tiers if tier)

    def _plugin(self, entry: Field, seen: dict[str, Field]) -> PluginOption | None:
        fields = self._mapping(entry, "a plugin is a mapping with a name", "- name: gang")
        named = fields.get("name")
        if named is None or not isinstance(named.value, str):
            raise self.source.error("malformed_policy", "the plugin has no name", named or entry, hint="- name: gang")
        name = named.value
        if name in seen:
            self._fault("duplicate_plugin", f"plugin {name!r} is on line {seen[name].line} too", named)
            return None
        seen[name] = named
        plugin: type[Plugin] | None = self._known("plugin", name, named, self._complain)
        if plugin is None:
            return None
        switches: dict[str, bool] = {}
        for key, field in fields.items():
            if key in ("name", "arguments"):
                continue
            stem = _SWITCH.sub("", key, count=1)
            if not _SWITCH.match(key) or stem not in _SWITCH_BY_STEM:
                hint = self._beside_arguments(key, plugin.arguments, plugin.not_built, ("name", "arguments", *SWITCHES))
                self._complain("unknown_switch", f"unknown switch {key!r} of plugin {name!r}", field, hint=hint)
            elif self.lenient and key not in SWITCHES:
                spelt = next(one for one in SWITCHES if _SWITCH.sub("", one) == stem)
                self._complain("unknown_switch", f"switch {key!r} of plugin {name!r} is spelt {spelt!r}", field)
            elif isinstance(field.value, bool):
                switches[_SWITCH_BY_STEM[stem]] = field.value
            else:
                self._complain("bad_value", f"{key} is true or false, not {field.value!r}", field, hint="true or false")
        arguments = self._arguments(f"plugin {name!r}", plugin.arguments, plugin.not_built, fields.get("arguments"))
        try:
            plugin.check(arguments)
        except ValueError as error:
            at = _place_of(str(error), plugin.arguments, fields.get("arguments", named))
            hint = f"docs/plugins.md says what the arguments of {name} may be"
            self._complain("bad_argument", f"plugin {name!r}: {error}", at, hint=hint)
            arguments = {argument.name: argument.default for argument in plugin.arguments}
        return PluginOption(name=name, switches=dict(sorted(switches.items())), arguments=arguments)

    def _beside_arguments(
        self, key: str, declared: tuple[Argument, ...], not_built: tuple[str, ...], others: tuple[str, ...]
    ) -> str:
        """What is meant by an unknown key beside ``arguments``: often one of them, written too far to the left."""
        spellings = {spelling: argument for argument in declared for spelling in (argument.name, *argument.aliases)}
        if key in not_built or self._argument(key, spellings)[0] is not None:
            return f"{key} belongs below arguments, two blanks further to the right"
        return did_you_mean(key, [*others, *spellings])

    def _known(self, kind: str, name: str, at: Field, complain: Callable[..., None]) -> Any:
        """The plugin or action of a name; None where there is none, which is said."""
        table: dict[str, Any] = dict(self.names.plugins if kind == "plugin" else self.names.actions)
        fault = self.names.broken.get((kind, name))
        if name not in table and fault is not None:
            self._fault(fault.code, fault.message, at, hint=fault.hint)
        elif name not in table and kind == "plugin" and name in NOT_BUILT:
            complain("not_built", f"plugin {name!r}: known, not built yet", at, hint=_NOT_BUILT)
        elif name not in table:
            known = [*table, *(NOT_BUILT if kind == "plugin" else ())]
            complain(f"unknown_{kind}", f"unknown {kind} {name!r}", at, hint=did_you_mean(name, known))
        return table.get(name)

    def _configurations(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        field = self.fields.get("configurations")
        for entry in (
            self._list(field, "configurations is a list of {name, arguments}", "configurations: [{name: enqueue}]")
            if field
            else []
        ):
            fields = self._mapping(entry, "a configuration is a mapping with the name of an action", "- name: enqueue")
            named = fields.get("name")
            if named is None or not isinstance(named.value, str):
                raise self.source.error("malformed_policy", "the configuration has no name", named or entry)
            name = named.value
            action: type[Action] | None = self._known("action", name, named, self._complain)
            for key, part in fields.items():
                if key not in ("name", "arguments"):
                    declared = action.arguments if action else ()
                    hint = self._beside_arguments(key, declared, (), ("name", "arguments"))
                    self._complain("unknown_key", f"unknown key {key!r} of action {name!r}", part, hint=hint)
            if action is not None:
                found[name] = self._arguments(f"action {name!r}", action.arguments, (), fields.get("arguments"))
        return dict(sorted(found.items()))

    def _arguments(
        self, owner: str, declared: tuple[Argument, ...], not_built: tuple[str, ...], field: Field | None
    ) -> dict[str, Any]:
        values = {argument.name: argument.default for argument in declared}
        if field is None or field.value is None:
            return values
        by_name = {spelling: argument for argument in declared for spelling in (argument.name, *argument.aliases)}
        for key, given in self._mapping(
            field, f"the arguments of {owner} are a mapping", "arguments: {name: value}"
        ).items():
            argument, rest = self._argument(key, by_name)
            if argument is not None:
                try:
                    value = checked(argument, given)
                    values[argument.name] = {**values[argument.name], rest: value} if rest else value
                except ValueError as error:
                    at = error.at if isinstance(error, BadEntry) else given
                    self._complain("bad_argument", f"{owner}: {error}", at, hint=f"{key}: {argument.doc}")
            elif key in not_built:
                self._complain(
                    "not_built", f"argument {key!r} of {owner}: known, not built yet", given, hint=_NOT_BUILT
                )
            else:
                hint = did_you_mean(key, by_name) if by_name else f"{owner} takes no arguments"
                self._complain("unknown_argument", f"unknown argument {key!r} of {owner}", given, hint=hint)
        return values

    @staticmethod
    def _argument(key: str, by_name: dict[str, Argument]) -> tuple[Argument | None, str]:
        """The argument that a key means, and the text in place of its name's placeholder (empty if it has none)."""
        if key in by_name:
            return by_name[key], ""
        for argument in by_name.values():
            if argument.stem and key.startswith(argument.stem) and len(key) > len(argument.stem):
                return argument, key[len(argument.stem) :]
        return None, ""

    # --- forms --------------------------------------------------------------------------------------------------------

    def _list(self, field: Field, message: str, right: str) -> list[Field]:
        if field.items is None:
            if field.value is None:
                return []
            raise self.source.error("malformed_policy", message, field, hint=right)
        return field.items

    def _mapping(self, field: Field, message: str, right: str) -> dict[str, Field]:
        if field.fields is None:
            raise self.source.error("malformed_policy", message, field, hint=right)
        return field.fields

    def _complain(self, code: str, message: str, at: Field, *, hint: str | None = None) -> None:
        """An error, or a warning in compatibility mode."""
        if self.lenient:
            self.warnings.append(f"line {at.line}: {message}; it has no effect")
        else:
            self._fault(code, message, at, hint=hint)

    def _fault(self, code: str, message: str, at: Field, *, hint: str | None = None) -> None:
        """An error; kept for later where all of them are asked for."""
        fault = self.source.error(code, message, at, hint=hint)
        if self.faults is None:
            raise fault
        self.faults.append(fault)


def _place_of(message: str, declared: tuple[Argument, ...], given: Field) -> Field:
    """The argument that a message about several of them names, as it is written; else all of them."""
    for argument in declared:
        if argument.name in message:
            for spelling in (argument.name, *argument.aliases):
                if given.fields and spelling in given.fields:
                    return given.fields[spelling]
    return given
