"""predicates and nodeorder: the company that pods want, and whose company they do not."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core.model.observed import Namespace
from scheduler_core.model.relations import PodSubject, PodTerm, PreferredPodTerm, Relations
from scheduler_core.model.selector import NodeSelectorRequirement
from scheduler_core.state.workspace import Workspace
from tests.core.open_session import allowed, opened, scores, task_of
from tests.core.small_cluster import binds, decide, gang, node, policy, service, snapshot, training

NODES = [
    node("n1", labels={"zone": "a", "host": "n1"}),
    node("n2", labels={"zone": "a", "host": "n2"}),
    node("n3", labels={"zone": "b", "host": "n3"}),
    node("n4"),
]
ALL = ["n1", "n2", "n3", "n4"]


def line(key, operator="In", *values):
    return NodeSelectorRequirement(key, operator, values)


def term(key="zone", *lines, namespaces=("ns",), further=None, **labels):
    selector = (*(line(k, "In", v) for k, v in sorted(labels.items())), *lines)
    return PodTerm(PodSubject(namespaces, further, selector), key)


def near(*terms):
    return {"relations": Relations(affinity=terms)}


def away(*terms):
    return {"relations": Relations(anti_affinity=terms)}


def wish(weight, one):
    return {"relations": Relations(preferred=(PreferredPodTerm(weight, one),))}


def cluster(pod, *others, **more):
    made = [
        gang(f"o{i}", 1, 0, "training", on=[where], **{"labels": labels, **extra})
        for i, (where, labels, extra) in enumerate(others)
    ]
    return snapshot(NODES, [training()], *made, gang("x", 1, 0, "training", **pod, **more))


WEB = {"app": "web"}


@pytest.mark.parametrize(
    ("pod", "others", "where"),
    [
        pytest.param({}, [], ALL, id="nobody asks for anything"),
        pytest.param(near(term(app="web")), [("n1", WEB, {})], ["n1", "n2"], id="the zone of a match"),
        pytest.param(near(term("host", app="web")), [("n1", WEB, {})], ["n1"], id="the host of a match"),
        pytest.param(near(term(app="web")), [("n4", WEB, {})], [], id="a match on a node without the label"),
        pytest.param(near(term(app="web")), [("n1", {"app": "db"}, {})], [], id="no match"),
        pytest.param({**near(term(app="web")), "labels": WEB}, [], ["n1", "n2", "n3"], id="the first of its kind"),
        pytest.param(
            {**near(term(app="web"), term("host", app="db")), "labels": WEB}, [], [], id="not for half of its terms"
        ),
        pytest.param({**near(term(app="web")), "labels": WEB}, [("n3", WEB, {})], ["n3"], id="not the first any more"),
        pytest.param(
            near(term(app="web"), term("host", tier="x")),
            [("n1", WEB, {}), ("n2", {"tier": "x"}, {})],
            [],
            id="no single pod matches all terms",
        ),
        pytest.param(
            near(term(app="web"), term("host", tier="x")),
            [("n1", WEB, {}), ("n2", {"app": "web", "tier": "x"}, {})],
            ["n2"],
            id="one pod matches all terms",
        ),
        pytest.param(
            near(term("zone", line("app", "NotIn", "web"))), [("n1", WEB, {}), ("n3", {}, {})], ["n3"], id="NotIn"
        ),
        pytest.param(
            near(term("zone", line("app", "Exists"))), [("n1", WEB, {}), ("n3", {}, {})], ["n1", "n2"], id="Exists"
        ),
        pytest.param(
            near(term("zone", line("app", "DoesNotExist"))), [("n1", WEB, {}), ("n3", {}, {})], ["n3"], id="none"
        ),
        pytest.param(
            near(term("zone", line("app", "In", "a", "web"), tier="x")),
            [("n1", WEB, {}), ("n3", {"app": "a", "tier": "x"}, {})],
            ["n3"],
            id="every line must hold",
        ),
        pytest.param(near(term(app="web", namespaces=("other",))), [("n1", WEB, {})], [], id="other namespaces only"),
        pytest.param(
            near(term(app="web", namespaces=("ns", "other"))), [("n1", WEB, {})], ["n1", "n2"], id="named namespaces"
        ),
        pytest.param(
            near(term(app="web", namespaces=(), further=())), [("n1", WEB, {})], ["n1", "n2"], id="every namespace"
        ),
        pytest.param(away(term(app="web")), [("n1", WEB, {})], ["n3", "n4"], id="away from a zone"),
        pytest.param(away(term("host", app="web")), [("n1", WEB, {})], ["n2", "n3", "n4"], id="away from a host"),
        pytest.param(away(term(app="web")), [("n4", WEB, {})], ALL, id="away, from a node without the label"),
        pytest.param({**away(term(app="web")), "labels": WEB}, [], ALL, id="its own terms do not stand against it"),
        pytest.param(
            away(term("host", app="web"), term(app="db")),
            [("n1", WEB, {}), ("n3", {"app": "db"}, {})],
            ["n2", "n4"],
            id="each term of anti-affinity stands alone",
        ),
        pytest.param({"labels": WEB}, [("n1", {}, away(term(app="web")))], ["n3", "n4"], id="not wanted there"),
        pytest.param({"labels": WEB}, [("n1", {}, away(term(app="db")))], ALL, id="not meant"),
        pytest.param(
            {"labels": WEB},
            [("n1", {}, away(term("host", app="web"))), ("n3", {}, away(term(app="web")))],
            ["n2", "n4"],
            id="not wanted by two",
        ),
        pytest.param(
            {**near(term(tier="db")), "labels": WEB},
            [("n1", {"tier": "db"}, away(term("host", app="web")))],
            ["n2"],
            id="near in the zone but not on the host",
        ),
    ],
)
def test_required_terms(pod, others, where):
    assert allowed(cluster(pod, *others), "x-0") == where


def test_namespaces_by_their_labels():
    pods = cluster(near(term(app="web", namespaces=(), further=(line("team", "In", "a"),))), ("n1", WEB, {}))
    assert allowed(pods, "x-0") == []
    labelled = msgspec.structs.replace(pods, namespaces=(Namespace(name="ns", labels={"team": "a"}),))
    assert allowed(labelled, "x-0") == ["n1", "n2"]


def test_who_leaves_is_no_company_and_stands_in_the_way_until_gone():
    leaving = ("n1", WEB, {"deleted": 900.0})
    assert allowed(cluster(near(term(app="web")), leaving), "x-0") == []
    pods = cluster(away(term(app="web")), leaving)
    assert allowed(pods, "x-0", at_once=True) == ["n3", "n4"]
    assert allowed(pods, "x-0") == ALL
    pods = cluster({"labels": WEB}, ("n1", {}, {"deleted": 900.0, **away(term(app="web"))}))
    assert allowed(pods, "x-0", at_once=True) == ["n3", "n4"]
    assert allowed(pods, "x-0") == ALL


def test_with_compatibility_who_leaves_counts_until_gone():
    upstream = msgspec.structs.replace(policy(), compatibility="volcano")
    leaving = ("n1", WEB, {"deleted": 900.0})
    assert allowed(cluster(near(term(app="web")), leaving), "x-0", upstream) == ["n1", "n2"]
    assert allowed(cluster(away(term(app="web")), leaving), "x-0", upstream) == ["n3", "n4"]


def test_eviction_could_cure_unwanted_company_but_not_missing_company():
    session = opened(cluster(away(term(app="web")), ("n1", WEB, {})))
    view = session.candidates.view(session.cluster.class_of(task_of(session, "x-0")))
    assert view.curable.all()
    session = opened(cluster(near(term(app="web"))))
    view = session.candidates.view(session.cluster.class_of(task_of(session, "x-0")))
    assert not view.curable.any()


def test_the_filter_can_be_switched_off():
    off = policy(predicates={"predicate.PodAffinityEnable": False})
    assert allowed(cluster(away(term(app="web")), ("n1", WEB, {})), "x-0", off) == ALL
    assert allowed(cluster({"labels": WEB}, ("n1", {}, away(term(app="web")))), "x-0", off) == ALL


def test_replicas_that_keep_apart_do_so_within_one_session():
    given = snapshot(NODES, [training()], service("x", 5, 0, "training", labels=WEB, **away(term("host", app="web"))))
    placed = binds(decide(given))
    # n4 has no such label, so it is no place: nothing keeps the last two apart there.
    assert sorted(placed.values()) == ["n1", "n2", "n3", "n4", "n4"]


def test_a_gang_that_wants_one_zone_stays_in_it():
    small = [node(f"{zone}{i}", 1, labels={"zone": zone}) for i in range(2) for zone in "ab"]
    given = snapshot(small, [training()], gang("x", 2, 1, "training", labels=WEB, **near(term(app="web"))))
    assert sorted(binds(decide(given)).values()) == ["a0", "a1"]
    three = gang("x", 3, 1, "training", labels=WEB, **near(term(app="web")))
    assert binds(decide(snapshot(small, [training()], three))) == {}


@pytest.mark.parametrize(
    ("pod", "others", "score"),
    [
        pytest.param(wish(10, term(app="web")), [("n1", WEB, {})], (100, 100, 0, 0), id="near"),
        pytest.param(wish(-10, term(app="web")), [("n1", WEB, {})], (0, 0, 100, 100), id="far"),
        pytest.param(
            wish(10, term(app="web")),
            [("n1", WEB, {}), ("n2", WEB, {}), ("n3", WEB, {})],
            (100, 100, 50, 0),
            id="count",
        ),
        pytest.param({"labels": WEB}, [("n3", {}, wish(5, term("host", app="web")))], (0, 0, 100, 0), id="wanted"),
        pytest.param(
            {"labels": WEB}, [("n3", {}, wish(-5, term("host", app="web")))], (100, 100, 0, 100), id="unwanted"
        ),
        pytest.param({"labels": {"app": "db"}}, [("n3", {}, wish(5, term(app="web")))], (0, 0, 0, 0), id="not meant"),
        pytest.param(
            {**wish(3, term("host", app="web")), "labels": {"app": "db"}},
            [("n1", WEB, {}), ("n3", WEB, wish(6, term("host", app="db")))],
            (33, 0, 100, 0),
            id="both directions add up",
        ),
    ],
)
def test_preferred_terms(pod, others, score):
    weights = {f"{name}.weight": 0 for name in ("leastrequested", "balancedresource", "tainttoleration")}
    only = policy(nodeorder={**weights, "podaffinity.weight": 1})
    assert tuple(scores(cluster(pod, *others), "x-0", only).values()) == score
    off = policy(nodeorder={**weights, "podaffinity.weight": 0})
    assert set(scores(cluster(pod, *others), "x-0", off).values()) == {0}


class TestClasses:
    """Tasks are told apart only where it matters."""

    def classes(self, *gangs):
        session = opened(snapshot(NODES, [training()], *gangs))
        return [int(session.tasks.cls[task_of(session, f"{name}-0")]) for name in "abcd"]

    def test_labels_alone_split_nothing(self):
        apps = [gang(name, 1, 0, "training", labels={"app": name}) for name in "abcd"]
        assert len(set(self.classes(*apps))) == 1

    def test_only_those_are_split_whom_anti_affinity_speaks_of(self):
        apps = [gang(name, 1, 0, "training", labels={"app": name}) for name in "abcd"]
        a, b, c, d = self.classes(*apps, gang("o", 1, 0, "training", on=["n1"], **away(term(app="b"))))
        assert a == c == d != b

    def test_affinity_of_others_splits_nobody(self):
        apps = [gang(name, 1, 0, "training", labels={"app": name}) for name in "abcd"]
        assert len(set(self.classes(*apps, gang("o", 1, 0, "training", on=["n1"], **near(term(app="b")))))) == 1

    def test_the_same_after_a_session_without_the_one_who_minds(self):
        workspace = Workspace()
        apps = [gang(name, 1, 0, "training", labels={"app": name}) for name in "abcd"]
        before = opened(snapshot(NODES, [training()], *apps), workspace=workspace)
        assert not before.candidates.volatile(before.cluster.class_of(task_of(before, "b-0")))
        minding = gang("o", 1, 0, "training", on=["n1"], **away(term(app="b")))
        after = opened(snapshot(NODES, [training()], *apps, minding), workspace=workspace)
        classes = [int(after.tasks.cls[task_of(after, f"{name}-0")]) for name in "abcd"]
        assert classes[0] == classes[2] == classes[3] != classes[1]
        cls = after.cluster.class_of(task_of(after, "b-0"))
        assert after.candidates.volatile(cls)
        assert after.candidates.view(cls).allowed.tolist() == [False, False, True, True]
