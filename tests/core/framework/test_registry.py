"""Plugins and actions of one's own, by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from scheduler_core import BadInput
from scheduler_core.actions import ACTIONS
from scheduler_core.framework import registry
from scheduler_core.framework.extension_points import check_points
from scheduler_core.framework.plugin import Action, Argument, Plugin, with_defaults
from scheduler_core.plugins import PLUGINS


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
    plugins, actions = registry.with_entry_points(PLUGINS, ACTIONS)
    assert plugins["hello"] is Hello
    assert actions["wave"] is Wave
    assert set(PLUGINS) < set(plugins)


@pytest.mark.parametrize(
    ("group", "name", "value", "code"),
    [
        ("plugins", "gang", "Hello", "duplicate_entry_point"),
        ("plugins", "wave", "Wave", "bad_entry_point"),
        ("actions", "hello", "Hello", "bad_entry_point"),
    ],
)
def test_what_cannot_be_installed(installed, group, name, value, code):
    installed(**{group: {name: value}})
    with pytest.raises(BadInput) as error:
        registry.with_entry_points(PLUGINS, ACTIONS)
    assert error.value.code == code


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
    with pytest.raises(BadInput) as error:
        registry.with_entry_points(PLUGINS, ACTIONS)
    assert (error.value.code, error.value.hint) == (code, hint)


def test_built_in_plugins_have_no_such_methods():
    for plugin in PLUGINS.values():
        check_points(plugin)


def test_a_table_holds_each_under_its_own_name():
    assert all(plugin.name == name for name, plugin in PLUGINS.items())
    assert all(action.name == name for name, action in ACTIONS.items())
    assert not set(PLUGINS) & registry.KNOWN_PLUGINS_NOT_BUILT
    assert not set(ACTIONS) & registry.KNOWN_ACTIONS_NOT_BUILT


def test_arguments_are_completed():
    assert with_defaults(Hello.arguments, {}) == {"greeting": "hi"}
    assert Hello({"greeting": "hello"}).values == {"greeting": "hello"}


def test_every_argument_says_what_it_is():
    for kind in (*PLUGINS.values(), *ACTIONS.values()):
        for argument in kind.arguments:
            assert argument.doc, f"{kind.name}: {argument.name}"
            assert argument.type in ("bool", "int", "float", "str", "list", "map", "weights", "records")
