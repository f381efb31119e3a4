"""What a pod says of other pods, as it is read."""

from __future__ import annotations

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.model.relations import PodSubject, PodTerm, PreferredPodTerm, SpreadConstraint
from scheduler_core.model.selector import NodeSelectorRequirement as Line
from tests.builders import pod, snapshot

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def relations_of(spec, **labels):
    return snapshot(pod("p", spec=spec, labels=labels)).pods[0].relations


def affinity(kind="podAffinity", when=REQUIRED, **term):
    return {"affinity": {kind: {when: [{"topologyKey": "zone", **term}]}}}


def spread(**fields):
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", **fields}]}


class TestTerms:
    @pytest.mark.parametrize(
        ("term", "subject"),
        [
            pytest.param({}, PodSubject(("default",), None, None), id="no selector matches nobody"),
            pytest.param({"labelSelector": {}}, PodSubject(("default",), None, ()), id="an empty one everybody"),
            pytest.param(
                {"labelSelector": {"matchLabels": {"b": "2", "a": 1}}},
                PodSubject(("default",), None, (Line("a", "In", ("1",)), Line("b", "In", ("2",)))),
                id="labels",
            ),
            pytest.param(
                {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y", "x"]}]}},
                PodSubject(("default",), None, (Line("a", "NotIn", ("x", "y")),)),
                id="expressions",
            ),
            pytest.param({"namespaces": ["b", "a"]}, PodSubject(("a", "b"), None, None), id="namespaces"),
            pytest.param({"namespaceSelector": {}}, PodSubject((), (), None), id="all namespaces"),
            pytest.param(
                {"labelSelector": {}, "matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["rev"]},
                PodSubject(("default",), None, (Line("app", "In", ("web",)), Line("rev", "NotIn", ("7",)))),
                id="like its own labels",
            ),
            pytest.param({"matchLabelKeys": ["app"]}, PodSubject(("default",), None, None), id="still nobody"),
        ],
    )
    def test_subjects(self, term, subject):
        found = relations_of(affinity(**term), app="web", rev="7")
        assert found.affinity == (PodTerm(subject, "zone"),)

    def test_wishes_of_both_kinds(self):
        term = {"topologyKey": "zone"}
        spec = {
            "affinity": {
                "podAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": term}]},
                "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term}], REQUIRED: [term]},
            }
        }
        found = relations_of(spec)
        one = PodTerm(PodSubject(("default",), None, None), "zone")
        assert found.preferred == (PreferredPodTerm(3, one), PreferredPodTerm(-100, one))
        assert found.anti_affinity == (one,)

    def test_nothing_said_is_nothing_kept(self):
        assert relations_of({}) is None
        assert relations_of({"affinity": {"podAffinity": {}}, "topologySpreadConstraints": []}) is None


class TestSpread:
    def test_defaults(self):
        (found,) = relations_of(spread()).spread
        subject = PodSubject(("default",), None, None)
        assert found == SpreadConstraint(subject=subject, topology_key="zone", max_skew=1, hard=True)

    def test_everything_said(self):
        (found,) = relations_of(
            spread(
                maxSkew=3,
                whenUnsatisfiable="ScheduleAnyway",
                minDomains=2,
                nodeAffinityPolicy="Ignore",
                nodeTaintsPolicy="Honor",
                labelSelector={"matchLabels": {"app": "web"}},
                matchLabelKeys=["rev"],
            ),
            rev="7",
        ).spread
        assert (found.max_skew, found.hard, found.min_domains) == (3, False, 2)
        assert (found.honor_affinity, found.honor_taints) == (False, True)
        assert found.subject.selector == (Line("app", "In", ("web",)), Line("rev", "In", ("7",)))


AT = "items[0].spec"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (affinity(topologyKey=""), f"{AT}.affinity.podAffinity.{REQUIRED}[0].topologyKey"),
        (
            affinity(labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
            f"{AT}.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator",
        ),
        (
            affinity(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            f"{AT}.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].values",
        ),
        (
            affinity(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}),
            f"{AT}.affinity.podAffinity.{REQUIRED}[0].namespaceSelector.matchExpressions[0].values",
        ),
        (
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}]}}},
            f"{AT}.affinity.podAntiAffinity.{PREFERRED}[0].weight",
        ),
        (spread(maxSkew=0), f"{AT}.topologySpreadConstraints[0].maxSkew"),
        (spread(minDomains=0), f"{AT}.topologySpreadConstraints[0].minDomains"),
        (spread(topologyKey=""), f"{AT}.topologySpreadConstraints[0].topologyKey"),
        (spread(whenUnsatisfiable="Perhaps"), f"{AT}.topologySpreadConstraints[0].whenUnsatisfiable"),
        (spread(nodeAffinityPolicy="Maybe"), f"{AT}.topologySpreadConstraints[0].nodeAffinityPolicy"),
        (spread(nodeTaintsPolicy="honor"), f"{AT}.topologySpreadConstraints[0].nodeTaintsPolicy"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(spec, path):
    with pytest.raises(BadInput) as caught:
        relations_of(spec)
    assert (caught.value.code, caught.value.path) == ("bad_value", path)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (affinity(labelSelector={"matchLabels": ["a"]}), "labelSelector.matchLabels"),
        (spread(maxSkew="many"), "topologySpreadConstraints[0].maxSkew"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologySpreadConstraints[0]"),
    ],
)
def test_malformed_terms(spec, path):
    with pytest.raises(BadInput) as caught:
        relations_of(spec)
    assert caught.value.code == "malformed_object"
    assert caught.value.path.endswith(path)
