"""Stored inputs: a difference leads back to the very snapshot that it was made from."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.model.observed import Namespace
from scheduler_core.model.storage import VolumeClaim
from tidesched_web.engine import inputs
from tidesched_web.engine.model import BadInput, Node, Pod, PodGroup, Queue, Snapshot

names = st.text("abc", min_size=1, max_size=3)


def unique(items, key):
    return tuple(sorted({key(item): item for item in items}.values(), key=key))


snapshots = st.builds(
    Snapshot,
    nodes=st.lists(st.builds(Node, name=names, cpu_milli=st.integers(0, 9))).map(lambda v: unique(v, lambda n: n.name)),
    pods=st.lists(st.builds(Pod, namespace=names, name=names, node=st.sampled_from(["", "n"]))).map(
        lambda v: unique(v, lambda p: p.key)
    ),
    pod_groups=st.lists(st.builds(PodGroup, namespace=names, name=names, min_member=st.integers(1, 3))).map(
        lambda v: unique(v, lambda g: g.key)
    ),
    queues=st.lists(st.builds(Queue, name=names, weight=st.integers(1, 3))).map(lambda v: unique(v, lambda q: q.name)),
    namespaces=st.lists(st.builds(Namespace, name=names)).map(lambda v: unique(v, lambda n: n.name)),
    claims=st.lists(st.builds(VolumeClaim, namespace=names, name=names, size=st.integers(0, 2))).map(
        lambda v: unique(v, lambda c: c.key)
    ),
    warnings=st.lists(names).map(tuple),
    latest=st.floats(0, 1e9),
)


@settings(max_examples=60, deadline=None)
@given(snapshots, snapshots)
def test_a_difference_is_undone_exactly(base: Snapshot, snapshot: Snapshot) -> None:
    stored = inputs.encode_difference(snapshot, base)
    again = inputs.decode(inputs.DIFFERENCE, stored, base)
    assert again == snapshot
    assert msgspec.msgpack.encode(again) == msgspec.msgpack.encode(snapshot, enc_hook=tuple)


@settings(max_examples=30, deadline=None)
@given(snapshots)
def test_a_full_input_is_read_back(snapshot: Snapshot) -> None:
    assert inputs.decode(inputs.FULL, inputs.encode_full(snapshot)) == snapshot


@pytest.mark.parametrize("payload", [b"", b"not zstd"])
def test_damage_is_said(payload: bytes) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        inputs.decode(inputs.FULL, payload)


def test_an_unknown_format_is_said() -> None:
    with pytest.raises(BadInput, match="full-9"):
        inputs.decode("full-9", inputs.encode_full(Snapshot()))
