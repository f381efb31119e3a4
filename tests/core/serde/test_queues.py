"""Queues: quotas by card, states, parents."""

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.model.queue import QueueState
from scheduler_core.serde.kubernetes import SnapshotBuilder
from tests import builders as b
from tests.builders import pod_group, queue, snapshot


def only(body):
    return next(q for q in b.taken([body]).queues if q.name != "default")


def test_quota_is_counted_in_thousandths_of_a_card():
    assert only(queue("q", {"NVIDIA-H200": 8, "Tesla-V100": 0.5})).card_quota == {
        "NVIDIA-H200": 8000,
        "Tesla-V100": 500,
    }
    assert only(queue("q")).card_quota is None
    assert only(queue("q", {})).card_quota == {}


def test_absent_cpu_and_memory_are_no_limit():
    taken = only(queue("q", cpu=4))
    assert (taken.cpu_milli, taken.memory_mib) == (4000, None)


@pytest.mark.parametrize("text", ['{"A": 1, "A": 2}', '{"A": 1, " A": 2}', '{"A|B": 1, "A | B": 1}'])
def test_a_card_that_stands_there_twice_is_not_guessed_at(text):
    body = queue("q")
    body["metadata"]["annotations"]["volcano.sh/card.quota"] = text
    assert "is there twice" in only(body).problem
    (found,) = b.taken([body]).findings
    assert (found.object, found.path) == ("Queue q", 'metadata.annotations["volcano.sh/card.quota"]')


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"A": "many"}', '{"A": true}', '{"A": 0.0001}', '{"A": 1e30}', '{"A": NaN}']
)
def test_a_quota_that_cannot_be_read_lets_no_gang_start_and_says_why(text):
    body = queue("q")
    body["metadata"]["annotations"]["volcano.sh/card.quota"] = text
    broken = only(body)
    assert broken.problem.startswith("annotation volcano.sh/card.quota: ")
    (found,) = b.taken([body]).findings
    assert (found.object, found.path) == ("Queue q", 'metadata.annotations["volcano.sh/card.quota"]')
    assert "NVIDIA-H200" in found.fix
    assert b.taken([body]).warnings == ()


def test_a_negative_quota_is_an_error_with_its_place():
    with pytest.raises(BadInput) as caught:
        snapshot(queue("q", {"NVIDIA-H200": -8}))
    assert caught.value.code == "bad_quantity"
    assert caught.value.path == 'items[0].metadata.annotations["volcano.sh/card.quota"]'


@pytest.mark.parametrize(
    ("text", "state"), [("Open", "Open"), ("", "Open"), ("Closing", "Closing"), ("Odd", "Unknown")]
)
def test_state(text, state):
    assert only(queue("q", state=text)).state is QueueState(state)


def test_a_missing_state_is_open():
    body = queue("q")
    del body["status"]
    assert only(body).state is QueueState.OPEN


def test_the_default_queue_is_made_where_it_is_missing():
    assert [(q.name, q.made) for q in snapshot().queues] == [("default", True)]
    assert [(q.name, q.made) for q in snapshot(queue("default")).queues] == [("default", False)]


@pytest.mark.parametrize(("field", "value"), [("weight", 0), ("weight", 65536), ("priority", -1)])
def test_numbers_out_of_bounds(field, value):
    body = queue("q")
    body["spec"][field] = value
    with pytest.raises(BadInput) as caught:
        snapshot(body)
    assert (caught.value.code, caught.value.path) == ("bad_value", f"items[0].spec.{field}")


def test_a_word_where_a_number_belongs():
    body = queue("q")
    body["spec"]["weight"] = "heavy"
    with pytest.raises(BadInput) as caught:
        snapshot(body)
    assert (caught.value.code, caught.value.path, caught.value.value) == (
        "malformed_object",
        "items[0].spec.weight",
        "heavy",
    )


def test_a_service_type_that_is_none_is_a_problem():
    assert "is not one of inference, training" in only(queue("q", service_type="batch")).problem


class TestParents:
    def test_a_cycle_names_its_queues(self):
        taken = snapshot(queue("z", parent="a"), queue("a", parent="m"), queue("m", parent="a"))
        assert [(f.object, f.path, "a -> m -> a" in f.message) for f in taken.findings] == [
            ("Queue a", "spec.parent", True),
            ("Queue m", "spec.parent", True),
        ]

    def test_a_queue_that_is_its_own_parent(self):
        assert "a -> a" in snapshot(queue("a", parent="a")).findings[0].message

    def test_what_is_above_the_parent_is_told(self):
        taken = snapshot(queue("a", cpu="4"), queue("b", parent="a", cpu="6"))
        (found,) = taken.findings
        assert (found.severity, found.object, found.path) == ("warning", "Queue b", "spec.capability.cpu")

    def test_a_chain_is_no_cycle(self):
        names = snapshot(queue("a", parent="b"), queue("b", parent="c"), queue("c", parent="root")).queues
        assert [q.parent for q in names] == ["b", "c", "root", ""]

    def test_a_parent_that_does_not_exist_is_told(self):
        taken = snapshot(queue("a", parent="nowhere"), queue("b", parent="root"), queue("c", parent="b"))
        (found,) = taken.findings
        assert (found.severity, found.object, found.path) == ("warning", "Queue a", "spec.parent")
        assert "nowhere does not exist" in found.message
        assert taken.warnings == ()
        assert [q.problem for q in taken.queues] == ["", "", "", ""]

    def test_a_live_cluster_goes_on_without_the_queues_of_the_cycle(self):
        builder = SnapshotBuilder()
        for body in (queue("a", parent="b"), queue("b", parent="a"), queue("c")):
            builder.upsert(body)
        problems = {q.name: q.problem for q in builder.build().queues}
        assert "a -> b -> a" in problems["a"]
        assert "a -> b -> a" in problems["b"]
        assert problems["c"] == ""


def test_a_gang_of_an_unknown_queue_stays():
    taken = snapshot(pod_group("g", "nowhere"))
    assert [group.queue for group in taken.pod_groups] == ["nowhere"]


@pytest.mark.parametrize(
    ("text", "names"), [(None, None), ("", ()), (" , ", ()), ("chat", ("chat",)), ("b, a,b", ("a", "b"))]
)
def test_a_queue_says_which_namespaces_may_use_it(text, names):
    obj = queue("q")
    if text is not None:
        obj["metadata"]["annotations"]["tidesched.io/namespaces"] = text
    found = only(obj)
    assert found.namespaces == names
    assert found.admits("chat") == (names is None or "chat" in names)
