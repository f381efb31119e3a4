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
        ("kind: List\napiVersion: v1\nitems:\n- 7\n", "malformed_object", 4),
    ],
)
def test_what_is_no_snapshot(text, code, line):
    error = error_of(text)
    assert (error.code, error.line, error.file) == (code, line, "snapshot.yaml")


def test_an_error_inside_names_line_and_pointer():
    body = listing(node("a"), node("b", cpu="-4"))
    text = yaml.safe_dump(body, sort_keys=False)
    error = error_of(text)
    assert error.path == "items[1].status.allocatable.cpu"
    assert text.splitlines()[error.line - 1].strip() in ("cpu: '-4'", 'cpu: "-4"', "cpu: -4")


def test_the_same_in_indented_json_and_in_a_second_document():
    bad = queue("q", {"A": -1})
    text = json.dumps(listing(bad), indent=1)
    error = error_of(text)
    assert "card.quota" in text.splitlines()[error.line - 1]
    text = yaml.safe_dump_all([node("n"), bad], sort_keys=False)
    error = error_of(text)
    assert error.path == 'documents[1].metadata.annotations["volcano.sh/card.quota"]'
    assert "card.quota" in text.splitlines()[error.line - 1]


def test_an_object_twice():
    error = error_of(json.dumps(listing(pod("p"), pod("p", namespace="other"), pod("p"))))
    assert (error.code, error.path, error.value) == ("duplicate_object", "items[2].metadata.name", "default/p")


def test_a_cycle_of_queues():
    text = yaml.safe_dump(listing(queue("a", parent="b"), queue("b", parent="a")), sort_keys=False)
    error = error_of(text)
    assert (error.code, error.path, error.value) == ("queue_cycle", "items[0].spec.parent", "a")
    assert text.splitlines()[error.line - 1].strip() == "parent: b"
    assert error.hint
