"""predicates: what the volumes of a pod leave of the nodes."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core.model.selector import NodeSelectorRequirement
from scheduler_core.model.storage import StorageClass, Volume, VolumeClaim
from tests.core.open_session import allowed, opened, view_of
from tests.core.small_cluster import binds, decide, gang, node, policy, snapshot, training

NODES = [
    node("n1", labels={"disk": "1", "topology.kubernetes.io/zone": "a"}),
    node("n2", labels={"disk": "2", "topology.kubernetes.io/zone": "b"}),
    node("n3"),
]
WAITS = StorageClass(name="waits", provisioner="kubernetes.io/no-provisioner", waits=True)
MAKES = StorageClass(name="makes", provisioner="disk.example", waits=True)
LIKE_A = StorageClass(
    name="zonal",
    provisioner="disk.example",
    waits=True,
    topologies=((NodeSelectorRequirement("topology.kubernetes.io/zone", "In", ("a",)),),),
)
AT_ONCE = StorageClass(name="at-once", provisioner="disk.example")
RW = ("ReadWriteOnce",)


def claim(name="c", **more):
    return VolumeClaim(**{"namespace": "ns", "name": name, "access_modes": RW, "size": 10, **more})


def volume(name="v", disk="", **more):
    nodes = ((NodeSelectorRequirement("disk", "In", (disk,)),),) if disk else None
    return Volume(
        **{"name": name, "access_modes": RW, "capacity": 10, "storage_class": "waits", "nodes": nodes, **more}
    )


def cluster(*gangs, claims=(), volumes=(), classes=(WAITS, MAKES, LIKE_A, AT_ONCE), nodes=NODES):
    given = snapshot(nodes, [training()], *gangs)
    parts = {
        "claims": tuple(sorted(claims, key=lambda one: one.key)),
        "volumes": tuple(sorted(volumes, key=lambda one: one.name)),
        "storage_classes": tuple(sorted(classes, key=lambda one: one.name)),
    }
    return msgspec.structs.replace(given, **parts)


def pod(*claims, name="x", **more):
    return gang(name, 1, 0, "training", claims=claims or ("c",), **more)


@pytest.mark.parametrize(
    ("claims", "volumes", "where", "refusal"),
    [
        pytest.param([], [], [], "volume claim missing", id="a snapshot without any claim"),
        pytest.param([claim("other")], [], [], "volume claim missing", id="no such claim"),
        pytest.param([claim(leaving=True)], [], [], "volume claim is being deleted", id="leaving"),
        pytest.param([claim(lost=True, volume="v")], [], [], "volume lost", id="lost"),
        pytest.param([claim(volume="v")], [], ["n1", "n2", "n3"], None, id="bound, volumes were not collected"),
        pytest.param([claim(volume="v")], [volume("w")], [], "volume missing", id="bound to a volume that is gone"),
        pytest.param(
            [claim(volume="v")],
            [volume(claim="ns/else")],
            [],
            "volume claim bound to another's volume",
            id="not its volume",
        ),
        pytest.param([claim(volume="v")], [volume(disk="2", claim="ns/c")], ["n2"], "volume node affinity", id="bound"),
        pytest.param(
            [claim(volume="v")],
            [volume(labels={"topology.kubernetes.io/zone": "a"})],
            ["n1", "n3"],
            "volume zone",
            id="by zone; a node without any zone is not asked",
        ),
        pytest.param(
            [claim(volume="v")],
            [volume(labels={"topology.kubernetes.io/zone": "a__b"})],
            ["n1", "n2", "n3"],
            None,
            id="two zones",
        ),
        pytest.param([claim(storage_class="at-once")], [], [], "unbound volume claim", id="unbound, immediate"),
        pytest.param([claim(storage_class="")], [], [], "unbound volume claim", id="unbound, without a class"),
        pytest.param([claim(storage_class="nothing")], [], [], "unbound volume claim", id="unbound, unknown class"),
        pytest.param([claim()], [], [], "unbound volume claim", id="unbound, no default class"),
        pytest.param([claim(storage_class="makes")], [], ["n1", "n2", "n3"], None, id="made anywhere"),
        pytest.param([claim(storage_class="zonal")], [], ["n1"], "no volume to bind", id="made in one zone"),
        pytest.param(
            [claim(storage_class="makes", selected_node="n2")], [], ["n2"], "no volume to bind", id="node was chosen"
        ),
        pytest.param([claim(storage_class="waits")], [], [], "no volume to bind", id="nothing to bind"),
        pytest.param(
            [claim(storage_class="waits")],
            [volume(disk="1"), volume("w", disk="2", capacity=9)],
            ["n1"],
            "no volume to bind",
            id="a volume of the node, one too small",
        ),
        pytest.param(
            [claim(storage_class="waits")],
            [volume(disk="1", mode="Block"), volume("w", disk="2", access_modes=("ReadOnlyMany",))],
            [],
            "no volume to bind",
            id="wrong mode, wrong access",
        ),
        pytest.param(
            [claim(storage_class="waits")],
            [volume(disk="1", available=False), volume("w", disk="2", claim="ns/else")],
            [],
            "no volume to bind",
            id="released, and another's",
        ),
        pytest.param(
            [claim(storage_class="waits")],
            [volume(disk="1", claim="ns/c")],
            ["n1"],
            "no volume to bind",
            id="kept for it",
        ),
        pytest.param(
            [claim(storage_class="waits", selector=(NodeSelectorRequirement("speed", "In", ("fast",)),))],
            [volume(disk="1"), volume("w", disk="2", labels={"speed": "fast"})],
            ["n2"],
            "no volume to bind",
            id="by label",
        ),
        pytest.param(
            [claim(storage_class="zonal")],
            [volume(disk="2", storage_class="zonal")],
            ["n1", "n2"],
            "no volume to bind",
            id="found or made",
        ),
    ],
)
def test_where_the_volume_can_be(claims, volumes, where, refusal):
    given = cluster(pod(), claims=claims, volumes=volumes)
    session = opened(given)
    view = view_of(session, "x-0")
    assert [n.name for n, ok in zip(session.snapshot.nodes, view.allowed, strict=True) if ok] == where
    assert (list(view.refused) or [None]) == [refusal]


def test_two_claims_need_two_volumes():
    claims = [claim("c", storage_class="waits", size=5), claim("d", storage_class="waits")]
    volumes = [volume("v", "1"), volume("w", "2"), volume("u", "2", capacity=5)]
    assert allowed(cluster(pod("c", "d"), claims=claims, volumes=volumes), "x-0") == ["n2"]
    # The larger of the two volumes must not go to the smaller claim.
    volumes = [volume("v", "1", capacity=10), volume("w", "1", capacity=7)]
    assert allowed(cluster(pod("c", "d"), claims=claims, volumes=volumes), "x-0") == ["n1"]


def test_a_volume_is_taken_once_within_a_session():
    claims = [claim("c", storage_class="waits"), claim("d", storage_class="waits")]
    volumes = [volume("v", "1"), volume("w", "2")]
    given = cluster(pod("c", name="a"), pod("d", name="b"), claims=claims, volumes=volumes)
    assert sorted(binds(decide(given)).values()) == ["n1", "n2"]
    given = cluster(pod("c", name="a"), pod("d", name="b"), claims=claims, volumes=volumes[:1])
    assert binds(decide(given)) == {"a-0": "n1"}


def test_a_claim_of_one_pod_alone():
    alone = claim(volume="v", access_modes=("ReadWriteOncePod",))
    user = pod(name="o", on=["n1"])
    assert allowed(cluster(pod(), user, claims=[alone], volumes=[volume()]), "x-0") == []
    leaving = cluster(pod(), pod(name="o", on=["n1"], deleted=900.0), claims=[alone], volumes=[volume()])
    assert allowed(leaving, "x-0", at_once=True) == []
    assert allowed(leaving, "x-0") == ["n1", "n2", "n3"]
    both = cluster(pod(name="a"), pod(name="b"), claims=[alone], volumes=[volume()])
    assert list(binds(decide(both))) == ["a-0"]


LIMITED = [node("n1", volume_limits={"csi-d": 1}), node("n2", volume_limits={"csi-d": 2}), node("n3")]


def disk(name, **more):
    return volume(name, driver="csi-d", handle=f"h-{name}", storage_class="", **more)


@pytest.mark.parametrize(
    ("held", "wanted", "where"),
    [
        ([], ["c"], ["n1", "n2", "n3"]),
        ([], ["c", "d"], ["n2", "n3"]),
        ([("n1", "e"), ("n2", "e")], ["c"], ["n2", "n3"]),
        ([("n1", "c")], ["c"], ["n1", "n2", "n3"]),
        ([("n2", "c"), ("n2", "e")], ["c", "d"], ["n3"]),
    ],
)
def test_how_many_volumes_may_be_attached(held, wanted, where):
    claims = [claim(name, volume=name, access_modes=("ReadWriteMany",)) for name in "cde"]
    volumes = [disk(name) for name in "cde"]
    users = [pod(name, name=f"o{i}", on=[where]) for i, (where, name) in enumerate(held)]
    given = cluster(pod(*wanted), *users, claims=claims, volumes=volumes, nodes=LIMITED)
    assert allowed(given, "x-0") == where


def test_attached_volumes_of_a_session_count():
    claims = [claim(name, volume=name) for name in "cde"]
    pods = [pod(name, name=name, node_selector={"one": ""}) for name in "cde"]
    nodes = [node("n1", volume_limits={"csi-d": 2}, labels={"one": ""})]
    given = cluster(*pods, claims=claims, volumes=[disk(name) for name in "cde"], nodes=nodes)
    assert sorted(binds(decide(given))) == ["c-0", "d-0"]


@pytest.mark.parametrize(
    ("argument", "claims", "volumes", "nodes"),
    [
        ("VolumeBinding", [claim()], [], NODES),
        ("VolumeZone", [claim(volume="v")], [volume(labels={"topology.kubernetes.io/zone": "z"})], NODES[:2]),
        ("NodeVolumeLimits", [claim(volume="v")], [disk("v")], [node("n1", volume_limits={"csi-d": 0})]),
    ],
)
def test_a_filter_can_be_switched_off(argument, claims, volumes, nodes):
    given = cluster(pod(), claims=claims, volumes=volumes, nodes=nodes)
    assert not allowed(given, "x-0")
    off = policy(predicates={f"predicate.{argument}Enable": False})
    assert len(allowed(given, "x-0", off)) == len(nodes)


def test_the_youngest_default_class_holds():
    old = StorageClass(name="old", default=True, created=1.0)
    young = StorageClass(name="young", default=True, created=2.0, waits=True, provisioner="disk.example")
    assert len(allowed(cluster(pod(), claims=[claim()], classes=(old, young)), "x-0")) == 3
