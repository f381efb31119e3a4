"""extender: each question, its answer, and what happens when there is none; with a client of the test's own."""

from __future__ import annotations

import json

import pytest

from scheduler_core import PluginOption, Policy, parse_policy, run_session
from scheduler_core.framework.extender_client import ExtenderError
from scheduler_core.model.errors import BadInput
from tests.core.small_cluster import H, binds, gang, node, policy, service, snapshot, training

URL = "http://extender.test/v1/"


class Service:
    """Answers by path; an exception is raised, bytes are sent as they are."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def post(self, url, body, timeout):
        assert url.startswith(URL)
        path = url.removeprefix(URL)
        self.asked.append((path, json.loads(body), timeout))
        answer = self.answers[path]
        if callable(answer):
            answer = answer(json.loads(body))
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def questions(self, path):
        return [body for name, body, _ in self.asked if name == path]


def with_extender(verbs, actions="enqueue allocate", **arguments):
    values = {f"extender.{verb}Verb": verb for verb in verbs}
    given = {"extender.urlPrefix": URL, **values, **{f"extender.{k}": v for k, v in arguments.items()}}
    rules = policy(actions)
    first, *others = rules.tiers
    return Policy(actions=rules.actions, tiers=((PluginOption(name="extender", arguments=given), *first), *others))


def run(answers, *gangs, nodes=("n1", "n2"), actions="enqueue allocate", **arguments):
    asked = Service(**answers)
    given = snapshot([node(name) for name in nodes], [training()], *gangs)
    result, _ = run_session(
        given, with_extender(answers, actions, **arguments), now=1000.0, extenders=asked, check=True
    )
    return result, asked


ONE = gang("x", 1, 1, "training")


def test_it_refuses_nodes():
    result, asked = run({"predicate": {"refused": {"n1": "too warm"}}}, ONE)
    assert binds(result) == {"x-0": "n2"}
    (question,) = asked.questions("predicate")
    assert question["nodes"] == ["n1", "n2"]
    assert question["task"]["name"] == "ns/x-0"
    assert question["task"]["card"] == {"names": [H], "milli": 1000}
    assert asked.asked[0][2] == 1.0


def test_it_scores_nodes():
    result, _ = run({"prioritize": {"scores": {"n2": 50, "n1": True}}}, ONE)
    assert binds(result) == {"x-0": "n2"}


@pytest.mark.parametrize("score", [None, "much", float("nan")])
def test_a_score_that_is_no_number_is_none(score):
    answer = json.dumps({"scores": {"n2": score}}).encode()
    assert binds(run({"prioritize": answer}, ONE)[0]) == {"x-0": "n1"}


@pytest.mark.parametrize(("status", "placed"), [(1, True), (0, True), (-1, False), (7, False), (True, False)])
def test_it_votes_on_admission(status, placed):
    result, _ = run({"jobEnqueueable": {"status": status}}, gang("x", 1, 1, "training"))
    assert bool(result.binds) is placed


@pytest.mark.parametrize("ready", [True, False])
def test_it_says_whether_a_gang_is_ready(ready):
    assert bool(run({"jobReady": {"status": ready}}, ONE)[0].binds) is ready


@pytest.mark.parametrize("overused", [True, False])
def test_it_says_whether_a_queue_is_overused(overused):
    result, asked = run({"queueOverused": {"overused": overused}}, ONE)
    assert bool(result.binds) is not overused
    assert asked.questions("queueOverused")[0]["queue"]["name"] == "training"


@pytest.mark.parametrize(
    ("answer", "evicted"),
    [
        ({"status": 1, "victims": ["ns/a-0"]}, ["ns/a-0"]),
        ({"status": 1, "victims": ["ns/b-0", "ns/nobody"]}, ["ns/b-0"]),
        ({"status": 0}, ["ns/a-0"]),
        ({"status": -1, "victims": []}, []),
        ({"status": "yes"}, []),
        (ExtenderError("gone"), []),
    ],
)
def test_it_names_victims(answer, evicted):
    plugins = [
        PluginOption(name="priority"),
        PluginOption(
            name="extender",
            arguments={"extender.urlPrefix": URL, "extender.preemptableVerb": "preemptable"},
        ),
    ]
    rules = Policy(actions=("allocate", "preempt"), tiers=(tuple(plugins),))
    low = [service(name, 1, 4, "training", on=["n1"], started=10.0, priority=1) for name in ("a", "b")]
    high = service("x", 1, 4, "training", priority=9, group={"priority": 9})
    given = snapshot([node("n1")], [training()], *low, high)
    result, _ = run_session(given, rules, now=1000.0, extenders=Service(preemptable=answer), check=True)
    assert [eviction.pod for eviction in result.evictions] == evicted


@pytest.mark.parametrize("broken", [ExtenderError("no answer in time"), b"no JSON", b"[]", {"refused": "all"}])
@pytest.mark.parametrize("ignorable", [True, False])
def test_a_predicate_that_fails(broken, ignorable):
    result, _ = run({"predicate": broken}, ONE, ignorable=ignorable)
    assert bool(result.binds) is ignorable


@pytest.mark.parametrize("verb", ["jobEnqueueable", "jobReady", "queueOverused"])
@pytest.mark.parametrize("ignorable", [True, False])
def test_a_question_that_fails(verb, ignorable):
    result, _ = run({verb: ExtenderError("gone")}, ONE, ignorable=ignorable)
    assert bool(result.binds) is ignorable


@pytest.mark.parametrize(("managed", "asked"), [([], 2), (["nvidia.com/gpu"], 1), ([H], 1), (["x/y"], 0)])
def test_only_tasks_that_ask_for_managed_resources(managed, asked):
    _, client = run({"predicate": {}}, ONE, gang("plain", 1, 0, "training"), managedResources=managed)
    assert len(client.questions("predicate")) == asked


def test_it_hears_of_sessions():
    _, asked = run({"onSessionOpen": {}, "onSessionClose": {}}, ONE)
    assert [path for path, _, _ in asked.asked] == ["onSessionOpen", "onSessionClose"]
    assert asked.questions("onSessionOpen")[0]["nodes"] == ["n1", "n2"]


def test_the_same_answers_give_the_same_session():
    first, second = (run({"predicate": {"refused": {"n1": "no"}}}, ONE)[0] for _ in range(2))
    assert first == second


def test_without_a_client():
    given = snapshot([node("n1")], [training()], ONE)
    with pytest.raises(BadInput) as caught:
        run_session(given, with_extender(["predicate"]), now=1000.0)
    assert caught.value.code == "no_extender_client"
    assert run_session(given, with_extender(["predicate"], ignorable=True), now=1000.0)[0].binds


@pytest.mark.parametrize(
    "arguments", ["{}", "{extender.urlPrefix: 'ftp://x'}", "{extender.urlPrefix: 'http://x', extender.httpTimeout: no}"]
)
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(BadInput):
        parse_policy(f"actions: allocate\ntiers:\n- plugins:\n  - name: extender\n    arguments: {arguments}\n")
