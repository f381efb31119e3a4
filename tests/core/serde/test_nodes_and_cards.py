"""Which cards a node has: labels and allocatable resources to card types."""

import pytest

from scheduler_core.model.cards import CardKind, NodeCards
from scheduler_core.model.errors import BadInput
from tests.builders import node, snapshot


def cards_of(*objects):
    return snapshot(*objects).nodes[0].cards


def test_whole_cards_need_the_product_label_alone():
    (only,) = snapshot(node("n", "NVIDIA-H200", 8)).nodes
    assert only.cards == (NodeCards("NVIDIA-H200", "nvidia.com/gpu", 8),)
    assert only.scalars == {}


def test_mig_slices_are_named_by_product_and_profile():
    taken = snapshot(node("n", "NVIDIA-H200", mig={"1g.18gb": 7, "3g.71gb": 2}))
    assert [card.card for card in taken.nodes[0].cards] == [
        "NVIDIA-H200/mig-1g.18gb-mixed",
        "NVIDIA-H200/mig-3g.71gb-mixed",
    ]
    slice_type = taken.card_types[0]
    assert (slice_type.kind, slice_type.parent, slice_type.resource) == (
        CardKind.MIG,
        "NVIDIA-H200",
        "nvidia.com/mig-1g.18gb",
    )


@pytest.mark.parametrize(
    ("memory_mb", "replicas", "name"),
    [(32768, 4, "Tesla-V100/mps-32g*1/4"), (81920, 8, "Tesla-V100/mps-80g*1/8"), (81559, 2, "Tesla-V100/mps-80g*1/2")],
)
def test_mps_shares_are_named_by_memory_and_replicas(memory_mb, replicas, name):
    (cards,) = cards_of(node("n", "Tesla-V100", shares=8, shares_per_card=replicas, card_memory_mb=memory_mb))
    assert cards == NodeCards(name, "nvidia.com/gpu.shared", 8)


@pytest.mark.parametrize(
    "broken", [{"nvidia.com/gpu.replicas": "none"}, {"nvidia.com/gpu.replicas": "0"}, {"nvidia.com/gpu.memory": ""}]
)
def test_mps_without_memory_or_replicas_is_left_aside_and_reported(broken):
    taken = snapshot(node("n", "Tesla-V100", shares=8, labels=broken))
    assert taken.nodes[0].cards == ()
    assert "nvidia.com/gpu.shared is left aside" in taken.warnings[0]


def test_another_resource_of_the_same_vendor_is_no_card():
    (only,) = snapshot(node("n", "NVIDIA-H200", 8, extended={"nvidia.com/hostdev": 4})).nodes
    assert only.cards == (NodeCards("NVIDIA-H200", "nvidia.com/gpu", 8),)
    assert only.scalars == {"nvidia.com/hostdev": 4}


def test_slices_on_a_node_without_a_product_label_are_reported_not_misnamed():
    bare = node("n", extended={"nvidia.com/mig-1g.18gb": 7})
    taken = snapshot(bare)
    assert taken.nodes[0].cards == ()
    assert taken.warnings == (
        "node n: nvidia.com/mig-1g.18gb is not counted as cards, no label nvidia.com/….product says which",
    )


def test_mig_labels_are_no_product_labels():
    labels = {"nvidia.com/mig-1g.18gb.product": "NVIDIA-H200-MIG-1g.18gb"}
    taken = snapshot(node("n", "NVIDIA-H200", mig={"1g.18gb": 7}, labels=labels))
    assert [card_type.name for card_type in taken.card_types] == ["NVIDIA-H200/mig-1g.18gb-mixed"]


def test_cards_of_another_vendor():
    npu = node("n", labels={"huawei.com/Ascend910.product": "Ascend-910B"}, extended={"huawei.com/Ascend910": 16})
    assert cards_of(npu) == (NodeCards("Ascend-910B", "huawei.com/Ascend910", 16),)


def test_zero_cards_are_no_cards():
    assert cards_of(node("n", "NVIDIA-H200", 0)) == ()


def test_memory_of_a_node_is_rounded_down_and_limits_are_kept():
    only = snapshot(node("n", cpu="31500m", memory="1073741825", pods=32)).nodes[0]
    assert (only.cpu_milli, only.memory_mib, only.pods) == (31500, 1024, 32)


def test_capacity_stands_in_for_absent_allocatable():
    bare = node("n")
    bare["status"] = {"capacity": {"cpu": 8, "memory": "16Gi"}}
    only = snapshot(bare).nodes[0]
    assert (only.cpu_milli, only.memory_mib, only.pods) == (8000, 16384, 110)


def test_a_negative_amount_names_its_place():
    bad = node("n", cpu="-4")
    with pytest.raises(BadInput) as caught:
        snapshot(bad)
    assert (caught.value.code, caught.value.path, caught.value.value) == (
        "bad_quantity",
        "items[0].status.allocatable.cpu",
        "-4",
    )


def test_one_name_for_two_resources_is_reported():
    other = node("b", labels={"amd.com/gpu.product": "NVIDIA-H200"}, extended={"amd.com/gpu": 8})
    taken = snapshot(node("a", "NVIDIA-H200", 8), other)
    assert taken.card_types[0].resource == "nvidia.com/gpu"
    assert "different resources" in taken.warnings[0]
