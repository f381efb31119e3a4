"""Files: YAML, JSON, lists of lists, and where in the file an error is."""

import json

import pytest
import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import read_snapshot
from tests.builders import listing, node, pod, queue

LIST = listing(node("n", "NVIDIA-H200", 8), queue("q", {"NVIDIA-H200": 8}), pod("p", card="NVIDIA-H200"))


def error_of(text, file="snapshot.yaml"):
    with pytest.raises(BadInput) as caught:
        read_snapshot(text, file)
    return caught.value


def test_yaml_json_and_documents_say_the_same():
    expected = read_snapshot(json.dumps(LIST))
    assert read_snapshot(yaml.safe_dump(LIST)) == expected
    assert read_snapshot(yaml.safe_dump_all(LIST["items"])) == expected
    assert read_snapshot(yaml.safe_dump_all([LIST, None])) == expected
    assert read_snapshot(b"\xef\xbb\xbf" + json.dumps(LIST).encode()) == expected


def test_a_typed_list_lends_its_kind():
    nodes = {
        "apiVersion": "v1",
        "kind": "NodeList",
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    }
    assert [n.name for n in read_snapshot(json.dumps(nodes)).nodes] == ["a", "b"]


def test_one_object_is_a_snapshot():
    assert read_snapshot(json.dumps(node("n"))).nodes[0].name == "n"


def test_a_list_without_items_is_empty():
    assert read_snapshot('{"apiVersion":"v1","kind":"List","items":null}').nodes == ()


def test_unquoted_times_stay_text():
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: n, creationTimestamp: 2026-01-01T00:00:10Z}\n"
    assert read_snapshot(text).latest == 1767225610.0


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "empty_snapshot", None),
        ("---\n---\n", "empty_snapshot", None),
        ("a: [1,\nb: 2\n", "malformed_yaml", 3),
        ('{"kind": "List",\n "items": [}', "malformed_json", 2),
        ('{"kind": "List",\n "items": [', "malformed_json", 2),
        (b"kind: \xff\xfe", "malformed_text", 1),
        ("hello", "malformed_object", 1),
        ("[1, 2]", "malformed_object", 1),
        ("kind: List\napiVersion: v1\nitems: 7\n", "malformed_object", 3),
        ("actions: allocate\ntiers: []\n", "empty_snapshot", 1),
        ('[{"kind": "Pod"}]', "malformed_object", 1),
    ],
)
def test_what_is_no_snapshot(text, code, line):
    error = error_of(text)
    assert (error.code, error.line, error.file) == (code, line, "snapshot.yaml")


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (7, ("malformed_object", "items[1]", "")),
        ({"kind": "Pod", "metadata": {"name": "x"}}, ("malformed_object", "Pod default/x", "apiVersion")),
        (node("b", cpu="-4"), ("bad_quantity", "Node b", "status.allocatable.cpu")),
        (queue("q", {"A": -1}), ("bad_quantity", "Queue q", 'metadata.annotations["volcano.sh/card.quota"]')),
        (node("a", cpu="9"), ("duplicate_object", "Node a", "metadata.name")),
    ],
)
def test_an_object_that_cannot_be_read_is_a_finding(bad, found):
    taken = read_snapshot(json.dumps({**listing(node("a", cpu="5")), "items": [node("a", cpu="5"), bad]}))
    assert [(f.code, f.object, f.path) for f in taken.findings] == [found]
    assert [(n.name, n.cpu_milli) for n in taken.nodes] == [("a", 5000)]


@pytest.mark.parametrize(
    "bad", [node("b", cpu="x"), queue("b", weight=-1), pod("b", spec={"tolerations": [{"key": 5}]})]
)
def test_the_first_of_two_counts_though_it_cannot_be_read(bad):
    good = {"Node": node("b", cpu="2"), "Queue": queue("b", weight=2), "Pod": pod("b", cpu=2)}[bad["kind"]]
    alone, both = (read_snapshot(json.dumps(listing(*items))) for items in ([bad], [bad, good]))
    assert [one.code for one in both.findings] == [alone.findings[0].code, "duplicate_object"]
    assert both.findings[0] == alone.findings[0]
    assert (both.nodes, both.queues, both.pods) == (alone.nodes, alone.queues, alone.pods)
