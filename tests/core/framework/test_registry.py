"""Plugins and actions of one's own, by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import msgspec
import pytest

from scheduler_core import BadInput, PluginOption
from scheduler_core.actions import ACTIONS
from scheduler_core.framework import registry
from scheduler_core.framework.extension_points import check_points
from scheduler_core.framework.plugin import Action, Argument, Plugin, with_defaults
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.lint import lint_policy
from scheduler_core.serde.policy import parse_policy
from tests.core.small_cluster import decide, node, policy, snapshot, training


class Hello(Plugin):
    """A plugin from outside."""

    name = "hello"
    arguments = (Argument(name="greeting", type="str", default="hi"),)


class Wave(Action):
    """An action from outside."""

    name = "wave"


class Misspelt(Plugin):
    """Its score would never be asked for."""

    name = "misspelt"

    def node_oder(self, cls, where):
        return 0.0


class Narrow(Plugin):
    """Its score does not take what it is given."""

    name = "narrow"

    def node_order(self, cls):
        return 0.0


class Forgetful(Plugin):
    """It would be asked once although its answers change."""

    name = "forgetful"

    def volatle(self, cls):
        return True


class Nameless(Plugin):
    """Nobody could tell what it has done."""


class Loose(Plugin):
    """A comma is missing."""

    name = "loose"
    arguments = Argument(name="greeting", type="str", default="hi")


@pytest.fixture
def installed(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def install(**by_group):
        monkeypatch.setattr(
            registry,
            "entry_points",
            lambda group: [EntryPoint(n, v, group) for n, v in by_group.get(group.rpartition(".")[2], {}).items()],
        )
        monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.value])

    return install


def test_built_in_and_installed(installed):
    installed(plugins={"hello": "Hello"}, actions={"wave": "Wave"})
    found = registry.with_entry_points(PLUGINS, ACTIONS)
    assert found.plugins == {**PLUGINS, "hello": Hello}
    assert found.actions == {**ACTIONS, "wave": Wave}
    assert not found.broken


@pytest.mark.parametrize(
    ("group", "name", "value", "code", "cause"),
    [
        ("plugins", "gang", "Hello", "duplicate_entry_point", "the name is taken"),
        ("plugins", "wave", "Wave", "bad_entry_point", "not a subclass of scheduler_core.framework.plugin.Plugin"),
        ("actions", "hello", "Hello", "bad_entry_point", "not a subclass of scheduler_core.framework.plugin.Action"),
        ("plugins", "lost", "Lost", "bad_entry_point", "cannot be loaded: KeyError: 'Lost'"),
        ("plugins", "nameless", "Nameless", "bad_entry_point", "the class has no name"),
        ("plugins", "loose", "Loose", "bad_entry_point", "its arguments are no tuple of Argument"),
    ],
)
def test_what_cannot_be_installed_is_kept_with_its_cause(installed, group, name, value, code, cause):
    installed(**{group: {name: value}, "actions" if group == "plugins" else "plugins": {}})
    found = registry.with_entry_points(PLUGINS, ACTIONS)
    ((key, broken),) = found.broken.items()
    assert key == (group.removesuffix("s"), name)
    assert broken.code == code
    assert cause in broken.message
    assert f"{name!r} ({value}" in broken.message
    assert broken.hint
    assert (found.plugins, found.actions) == (PLUGINS, ACTIONS)


def test_of_two_with_one_name_neither_is_used(installed, monkeypatch):
    installed()
    points = [EntryPoint("hello", value, registry.PLUGIN_GROUP) for value in ("Hello", "Hello", "Hello")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == registry.PLUGIN_GROUP else [])
    found = registry.with_entry_points(PLUGINS, ACTIONS)
    assert found.broken["plugin", "hello"].code == "duplicate_entry_point"
    assert "hello" not in found.plugins


@pytest.mark.parametrize(
    ("value", "code", "hint"),
    [
        (
            "Misspelt",
            "unknown_extension_point",
            "did you mean node_order? a name of your own begins with an underscore",
        ),
        ("Forgetful", "unknown_extension_point", "did you mean volatile? a name of your own begins with an underscore"),
        ("Narrow", "bad_extension_point", "it is called with cls, where"),
    ],
)
def test_a_method_that_can_only_be_a_mistake(installed, value, code, hint):
    installed(plugins={value.lower(): value})
    broken = registry.with_entry_points(PLUGINS, ACTIONS).broken["plugin", value.lower()]
    assert (broken.code, broken.hint) == (code, hint)


@pytest.fixture
def with_broken(installed, monkeypatch):
    """A process in which one plugin and one action are broken."""
    installed(plugins={"lost": "Lost", "hello": "Hello"}, actions={"wave": "Lost"})
    monkeypatch.setattr("scheduler_core.scheduler._tables", None)


NEITHER = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (NEITHER.replace("gang", "lost"), "tiers[0].plugins[0].name"),
        (NEITHER.replace("gang", "lost") + "\ncompatibility: volcano", "tiers[0].plugins[0].name"),
        (NEITHER.replace("allocate", "allocate, wave"), "actions"),
    ],
)
def test_a_policy_that_names_it_is_refused_with_the_cause(with_broken, text, path):
    with pytest.raises(BadInput) as error:
        parse_policy(text)
    assert (error.value.code, error.value.path) == ("bad_entry_point", path)
    assert "cannot be loaded: KeyError: 'Lost'" in error.value.message


def test_other_policies_go_on_and_lint_tells_of_it(with_broken):
    parse_policy(NEITHER.replace("gang", "hello"))
    decide(snapshot([node("n")], [training()]), parse_policy(NEITHER))
    found = [(one.severity, one.code, one.message) for one in lint_policy(NEITHER) if "entry" in one.code]
    assert [(severity, code) for severity, code, _ in found] == [("warning", "bad_entry_point")] * 2
    assert all("cannot be loaded: KeyError: 'Lost'" in message for *_, message in found)
    named = [one.severity for one in lint_policy(NEITHER.replace("gang", "lost")) if "plugin 'lost'" in one.message]
    assert named == ["error"]


@pytest.mark.parametrize(("kind", "given"), [("plugin", {"tiers": ((PluginOption(name="lost"),),)}), ("action", {})])
def test_a_session_says_the_cause_too(with_broken, kind, given):
    """A policy that was read by another process."""
    rules = msgspec.structs.replace(policy("allocate wave"), **given)
    with pytest.raises(BadInput, match=f"^{kind} '(lost|wave)' .*KeyError: 'Lost'"):
        decide(snapshot([node("n")], [training()]), rules)


def test_built_in_plugins_have_no_such_methods():
    for plugin in PLUGINS.values():
        check_points(plugin)


def test_a_table_holds_each_under_its_own_name():
    assert all(plugin.name == name for name, plugin in PLUGINS.items())
    assert all(action.name == name for name, action in ACTIONS.items())
    assert not set(PLUGINS) & registry.NOT_BUILT


def test_arguments_are_completed():
    assert with_defaults(Hello.arguments, {}) == {"greeting": "hi"}
    assert Hello({"greeting": "hello"}).values == {"greeting": "hello"}


def test_every_argument_says_what_it_is():
    for kind in (*PLUGINS.values(), *ACTIONS.values()):
        for argument in kind.arguments:
            assert argument.doc, f"{kind.name}: {argument.name}"
            assert argument.type in ("bool", "int", "float", "str", "list", "map", "weights", "records")
