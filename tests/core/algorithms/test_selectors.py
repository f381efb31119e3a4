"""Selectors, taints and scaling: Kubernetes' own rules."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_core.algorithms.scoring import normalised
from scheduler_core.algorithms.selectors import NodeIndex, tolerates
from scheduler_core.model.node import Node, Taint
from scheduler_core.model.pod import NodeSelectorRequirement as Requirement
from scheduler_core.model.pod import Toleration

INDEX = NodeIndex(
    (
        Node(name="a", labels={"zone": "1", "size": "4"}, taints=(Taint("gpu", "yes", "NoSchedule"),)),
        Node(name="b", labels={"zone": "2"}, taints=(Taint("soft", "", "PreferNoSchedule"),)),
        Node(name="c"),
    )
)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (Requirement("zone", "In", ("1", "2")), "ab"),
        (Requirement("zone", "NotIn", ("1",)), "bc"),
        (Requirement("zone", "Exists"), "ab"),
        (Requirement("zone", "DoesNotExist"), "c"),
        (Requirement("size", "Gt", ("3",)), "a"),
        (Requirement("size", "Lt", ("4",)), ""),
        (Requirement("metadata.name", "In", ("c",)), "c"),
    ],
)
def test_requirements(requirement, expected):
    assert "".join("abc"[i] for i in np.flatnonzero(INDEX.requirement(requirement))) == expected


def test_an_empty_term_meets_nothing():
    assert not INDEX.term(()).any()


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "no", "NoSchedule"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
    ],
)
def test_tolerations(toleration, tolerated):
    assert tolerates(toleration, Taint("gpu", "yes", "NoSchedule")) == tolerated


def test_taints_are_counted_by_kind():
    assert INDEX.intolerable((), preferred=False).tolist() == [1, 0, 0]
    assert INDEX.intolerable((), preferred=True).tolist() == [0, 1, 0]
    assert INDEX.intolerable((Toleration("", "Exists"),), preferred=False).tolist() == [0, 0, 0]


def test_scaling():
    assert normalised(np.array([0, 2, 4])).tolist() == [0.0, 50.0, 100.0]
    assert normalised(np.array([0, 4]), reverse=True).tolist() == [100.0, 0.0]
    assert normalised(np.array([0, 0]), reverse=True).tolist() == [100.0, 100.0]
