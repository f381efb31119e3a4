"""deviceshare: single cards and shares of cards as Volcano's device plugins count them."""

from __future__ import annotations

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.policy import parse_policy
from tests.core.open_session import allowed, own_scores, with_plugin
from tests.core.small_cluster import binds, decide, gang, node, service, snapshot, training

SHARE, NUMBER, VGPU = ({f"deviceshare.{kind}Enable": True} for kind in ("GPUSharing", "GPUNumber", "VGPU"))
MEMORY, COUNT = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


def shared(name, cards=2, memory=16, **more):
    """A node whose agent shares cards by memory."""
    return node(name, 0, scalars={COUNT: cards, MEMORY: cards * memory}, **more)


def virtual(name, cards=2, memory=1000, most=4, healthy="true"):
    register = "".join(f"{name}-{i},{most},{memory},NVIDIA-T4,{healthy},hami-core:" for i in range(cards))
    scalars = {"volcano.sh/vgpu-number": cards * most, "volcano.sh/vgpu-memory": cards * memory}
    return node(name, 0, scalars=scalars, annotations={"volcano.sh/node-vgpu-register": register})


def asks(memory=0, count=0):
    return {"scalars": {name: amount for name, amount in ((MEMORY, memory), (COUNT, count)) if amount}}


def vasks(**amounts):
    return {"scalars": {f"volcano.sh/vgpu-{name.replace('_', '-')}": amount for name, amount in amounts.items()}}


def held(name, on, cards="", **request):
    notes = {"volcano.sh/gpu-index": cards} if cards else {}
    return gang(name, 1, 0, "training", on=[on], annotations=notes, **asks(**request))


@pytest.mark.parametrize(
    ("others", "request_", "where"),
    [
        pytest.param([], {"memory": 16}, ["n1", "n2"], id="a whole card's memory"),
        pytest.param([], {"memory": 17}, [], id="no single card has so much"),
        pytest.param(
            [held("a", "n1", "0", memory=10), held("b", "n1", "1", memory=10)], {"memory": 8}, ["n2"], id="6 + 6"
        ),
        pytest.param(
            [held("a", "n1", "0", memory=10), held("b", "n1", "0", memory=6)], {"memory": 16}, ["n1", "n2"], id="0 + 16"
        ),
        pytest.param(
            [held("a", "n1", memory=10), held("b", "n1", memory=10)], {"memory": 8}, ["n2"], id="nobody said where"
        ),
    ],
)
def test_shares_by_memory(others, request_, where):
    given = snapshot(
        [shared("n1"), shared("n2")], [training()], *others, gang("x", 1, 0, "training", **asks(**request_))
    )
    assert allowed(given, "x-0", with_plugin("deviceshare", **SHARE)) == where


def test_what_leaves_is_free_later():
    leaving = gang("a", 1, 0, "training", on=["n1"], deleted=900.0, **asks(memory=16))
    given = snapshot([shared("n1", 1)], [training()], leaving, gang("x", 1, 0, "training", **asks(memory=16)))
    rules = with_plugin("deviceshare", **SHARE)
    assert allowed(given, "x-0", rules, at_once=True) == []
    assert allowed(given, "x-0", rules) == ["n1"]


def test_whole_cards_must_be_idle_and_healthy():
    sick = shared("n3", annotations={"volcano.sh/gpu-unhealthy-ids": "1"})
    nodes = [shared("n1"), shared("n2"), sick]
    pods = [held("a", "n1", "1", count=1), gang("x", 1, 0, "training", **asks(count=2))]
    rules = with_plugin("deviceshare", **NUMBER)
    assert allowed(snapshot(nodes, [training()], *pods), "x-0", rules) == ["n2"]


def vheld(name, on, cards, **request):
    return gang(name, 1, 0, "training", on=[on], annotations={"volcano.sh/vgpu-ids-new": cards}, **vasks(**request))


@pytest.mark.parametrize(
    ("others", "request_", "where"),
    [
        pytest.param([], {"number": 2}, ["n1", "n2"], id="whole memory is the default"),
        pytest.param([], {"number": 3}, [], id="too many"),
        pytest.param([], {"number": 2, "memory": 1001}, [], id="too much memory"),
        pytest.param(
            [vheld("a", "n1", "n1-0,NVIDIA,600,0:", number=1, memory=600)],
            {"number": 2, "memory": 500},
            ["n2"],
            id="memory of one",
        ),
        pytest.param(
            [vheld("a", "n1", "n1-0,NVIDIA,600,0:", number=1, memory=600)],
            {"number": 1, "memory_percentage": 50},
            ["n1", "n2"],
            id="half",
        ),
        pytest.param(
            [vheld("a", "n1", "n1-0,NVIDIA,10,60:;n1-1,NVIDIA,10,60:", number=2)],
            {"number": 1, "memory": 10, "cores": 50},
            ["n2"],
            id="cores",
        ),
        pytest.param(
            [vheld("a", "n1", "n1-0,NVIDIA,10,0:n1-1,NVIDIA,10,0:", number=2)],
            {"number": 1, "memory": 10, "cores": 100},
            ["n2"],
            id="all cores: alone",
        ),
        pytest.param(
            [vheld("a", "n1", "n1-0,NVIDIA,10,100:n1-1,NVIDIA,10,100:", number=2)],
            {"number": 1, "memory": 10},
            ["n2"],
            id="no core left",
        ),
        pytest.param([], {"memory": 500}, ["n1", "n2"], id="memory alone means one"),
    ],
)
def test_virtual_cards(others, request_, where):
    nodes = [virtual("n1"), virtual("n2"), virtual("n3", healthy="false")]
    given = snapshot(nodes, [training()], *others, gang("x", 1, 0, "training", **vasks(**request_)))
    assert allowed(given, "x-0", with_plugin("deviceshare", **VGPU)) == where


def test_shares_of_one_session_need_room_on_single_cards():
    given = snapshot([shared("n1", 2, 10)], [training()], service("x", 3, 0, "training", **asks(memory=6)))
    result = decide(given, with_plugin("deviceshare", **SHARE))
    assert len(result.binds) == 2
    assert sorted(bind.notes["volcano.sh/gpu-index"] for bind in result.binds) == ["0", "1"]


def test_virtual_cards_are_noted():
    given = snapshot(
        [virtual("n1")], [training()], gang("x", 1, 0, "training", **vasks(number=2, memory=300, cores=10))
    )
    (bind,) = decide(given, with_plugin("deviceshare", **VGPU)).binds
    assert bind.notes == {
        "volcano.sh/vgpu-ids-new": "n1-0,NVIDIA,300,10:n1-1,NVIDIA,300,10:",
        "volcano.sh/vgpu-node": "n1",
    }


@pytest.mark.parametrize(
    ("policy", "scores", "card"),
    [
        ("binpack", {"n1": 75.0, "n2": 50.0}, "0"),
        ("spread", {"n1": 100.0, "n2": 100.0}, "1"),
        ("", {"n1": 0.0, "n2": 0.0}, "0"),
    ],
)
def test_policies(policy, scores, card):
    pods = [held("a", "n1", "0", memory=4), gang("x", 1, 0, "training", node_selector={"name": "n1"}, **asks(memory=8))]
    given = snapshot([shared("n1", labels={"name": "n1"}), shared("n2")], [training()], *pods)
    arguments = {**SHARE, "deviceshare.SchedulePolicy": policy, "deviceshare.ScheduleWeight": 1}
    assert own_scores(given, "x-0", "deviceshare", **arguments) == scores
    (bind,) = decide(given, with_plugin("deviceshare", **arguments)).binds
    assert bind.notes["volcano.sh/gpu-index"] == card


def test_pods_that_ask_for_none_go_anywhere():
    given = snapshot([node("n1")], [training()], gang("x", 1, 0, "training"))
    assert binds(decide(given, with_plugin("deviceshare", **VGPU))) == {"x-0": "n1"}


def test_one_kind_at_a_time():
    text = """
actions: "allocate"
tiers:
- plugins:
  - name: deviceshare
    arguments: {deviceshare.GPUSharingEnable: true, deviceshare.VGPUEnable: true}
"""
    with pytest.raises(BadInput, match="cannot both be true"):
        parse_policy(text)
