"""A plugin of one's own that raises, or whose answer is none of its extension point."""

from __future__ import annotations

from types import FunctionType

import msgspec
import numpy as np
import pytest

from scheduler_core import BadInput, PluginOption
from scheduler_core.actions import ACTIONS
from scheduler_core.cli.main import BAD_INPUT, main
from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.plugin import Action, Plugin
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.policy import parse_policy
from tests.core.small_cluster import binds, decide, gang, node, policy, snapshot, training

NODES = [node("a"), node("b"), node("c")]
GIVEN = snapshot(NODES, [training()], gang("x", 2, 0, "training"), gang("y", 1, 0, "training"))


@pytest.fixture
def installed(monkeypatch):
    """Make a plugin out of methods, as if a package had added it; returns a policy that names it."""

    def install(**methods):
        plugin = type("Own", (Plugin,), {"name": "own", "__module__": __name__, **methods})
        monkeypatch.setitem(PLUGINS, "own", plugin)
        monkeypatch.setattr("scheduler_core.scheduler._tables", None)
        rules = policy("enqueue allocate backfill")
        return msgspec.structs.replace(rules, tiers=(*rules.tiers, (PluginOption(name="own"),)))

    return install


def raises(self, *given):
    raise KeyError("quiet")


def raising(name):
    """The same under the name of an extension point."""
    return FunctionType(raises.__code__.replace(co_name=name), globals())


def predicate(self, cls):
    yield "kept", np.ones(3, dtype=np.bool_)
    raise KeyError("quiet")


def opens(self, session):
    session.nothing()


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        ("__init__", raising("__init__"), "KeyError: 'quiet'"),
        ("open", raising("open"), "KeyError: 'quiet'"),
        ("opens", opens, "AttributeError: 'Session' object has no attribute 'nothing'"),
        ("remember", raising("remember"), "KeyError: 'quiet'"),
        ("volatile", raising("volatile"), "KeyError: 'quiet'"),
        ("predicate", raising("predicate"), "KeyError: 'quiet'"),
        ("predicate", predicate, "KeyError: 'quiet'"),
        ("node_order", raising("node_order"), "KeyError: 'quiet'"),
        ("task_node_order", raising("task_node_order"), "KeyError: 'quiet'"),
        ("job_order", raising("job_order"), "KeyError: 'quiet'"),
        ("job_valid", raising("job_valid"), "KeyError: 'quiet'"),
    ],
)
def test_what_a_method_raises_names_it(installed, name, method, said):
    rules = installed(**{name.removesuffix("s"): method})
    with pytest.raises(BadInput) as error:
        decide(GIVEN, rules)
    assert error.value.code == "plugin_error"
    assert error.value.message.startswith(f"your plugin 'own', method {name}: {said} ({__name__}, line ")
    assert isinstance(error.value.__cause__, KeyError | AttributeError)


def test_what_the_check_of_arguments_raises(installed):
    text = "tiers: [{plugins: [{name: own}]}]"
    installed(check=classmethod(raising("check")))
    with pytest.raises(BadInput, match="your plugin 'own', method check: KeyError: 'quiet'"):
        parse_policy(text)

    def refuses(cls, values):
        raise ValueError("label and weight exclude each other")

    installed(check=classmethod(refuses))
    with pytest.raises(BadInput, match=r"^plugin 'own': label and weight exclude each other$"):
        parse_policy(text)


def test_what_an_action_raises_names_it(monkeypatch):
    own = type("Own", (Action,), {"name": "own", "execute": raising("execute"), "__module__": __name__})
    monkeypatch.setitem(ACTIONS, "own", own)
    monkeypatch.setattr("scheduler_core.scheduler._tables", None)
    with pytest.raises(BadInput, match=r"^your action 'own', method execute: KeyError: 'quiet'"):
        decide(GIVEN, policy("allocate own"))


MASK, LATER = np.ones(3, dtype=np.bool_), (False, True, True)
NAN = np.array([1.0, np.nan, 0.0])
A_MASK = "not (label, mask) or (label, mask now, mask later), a mask is a bool array of 3 nodes"
A_SCORE = "not an array of 3 numbers, none of them infinite or NaN"


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("task_predicate", MASK, f"an array of bool, shape (3,), {A_MASK}"),
        ("task_predicate", ("kept", MASK[:2]), f"(str 'kept', an array of bool, shape (2,)), {A_MASK}"),
        ("task_predicate", ("kept", MASK.astype(np.int64)), f"(str 'kept', an array of int64, shape (3,)), {A_MASK}"),
        ("task_predicate", ("kept",), f"(str 'kept'), {A_MASK}"),
        ("task_predicate", [("kept", MASK)], A_MASK),
        ("predicate", None, "NoneType None, not an iterator of (label, mask)"),
        ("predicate", MASK, A_MASK),
        ("predicate", ("kept", MASK), f"(str 'kept', an array of bool, shape (3,)), {A_MASK}"),
        ("predicate", [("kept", MASK.tolist())], A_MASK),
        ("predicate", [None], A_MASK),
        ("predicate", [MASK], f"(an array of bool, shape (3,)), {A_MASK}"),
        ("node_order", 1.0, f"float 1.0, {A_SCORE}"),
        ("node_order", NAN, f"an array of float64, shape (3,), not all of them finite, {A_SCORE}"),
        ("node_order", NAN[:1], f"an array of float64, shape (1,), {A_SCORE}"),
        ("node_order", MASK, f"an array of bool, shape (3,), {A_SCORE}"),
        ("task_node_order", -np.inf * np.ones(3), A_SCORE),
        ("task_node_order", np.float64(1), A_SCORE),
        ("task_node_order", np.ones((3, 1)), f"an array of float64, shape (3, 1), {A_SCORE}"),
        ("job_order", 1, "int 1, not tuple[Any, ...]"),
        ("job_ready", None, "NoneType None, not bool"),
        ("job_valid", True, "bool True, not str | None"),
    ],
)
def test_an_answer_that_is_none_is_refused(installed, name, answer, said):
    rules = installed(**{name: lambda self, *given: answer})
    with pytest.raises(BadInput) as error:
        decide(GIVEN, rules)
    assert error.value.code == "bad_answer"
    assert error.value.message.startswith(f"your plugin 'own', method {name}: answers ")
    assert error.value.message.endswith(said)


@pytest.mark.parametrize(
    ("name", "answer", "nodes"),
    [
        ("predicate", [("kept", np.array(LATER))], "bc"),
        ("predicate", [("kept", np.array(LATER), MASK)], "bc"),
        ("predicate", (), "abc"),
        ("task_predicate", ("kept", np.array(LATER)), "bc"),
        ("task_predicate", None, "abc"),
        ("task_node_order", None, "abc"),
        ("task_node_order", np.array([0, 0, 900], dtype=np.int16), "c"),
        ("task_node_order", np.array([0, 900, 0], dtype=np.float32), "b"),
        ("job_order", (np.float64(1), "x"), "abc"),
        ("job_ready", np.True_, "abc"),
        ("job_pipelined", Ballot.ABSTAIN, "abc"),
    ],
)
def test_an_answer_of_the_point_counts(installed, name, answer, nodes):
    found = binds(decide(GIVEN, installed(**{name: lambda self, *given: answer})))
    assert set(found) == {"x-0", "x-1", "y-0"}
    assert set(found.values()) <= set(nodes)


def test_a_score_of_some_nodes_is_as_long_as_they_are(installed):
    asked = []

    def node_order(self, cls, where):
        score = np.array([0, 500, 0])[where]
        asked.append(len(score))
        return score

    found = binds(decide(GIVEN, installed(node_order=node_order)))
    assert set(found.values()) == {"b"}
    assert min(asked) < 3


def test_the_command_ends_as_for_any_policy_that_cannot_be_used(installed, tmp_path, capsys):
    installed(open=raising("open"))
    conf, objects = tmp_path / "policy.yaml", tmp_path / "objects.yaml"
    conf.write_text("tiers: [{plugins: [{name: own}]}]")
    objects.write_text("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: a}}]}")
    assert main(["run", "--snapshot", str(objects), "--conf", str(conf)]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith("error: your plugin 'own', method open: KeyError: 'quiet'")
    assert "please report" not in said
