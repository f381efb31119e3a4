"""resourcequota: what the API server would refuse is not admitted."""

from __future__ import annotations

import pytest

from scheduler_core.framework.combine import Ballot
from scheduler_core.model.resource_quota import ResourceQuota
from scheduler_core.plugins.resourcequota import ResourceQuotas
from tests import builders as b
from tests.core.plugins.opening import opened


def quota(hard, used=None, *, name="team", namespace="default", **spec):
    status = {} if used is None else {"status": {"used": used}}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard, **spec}, **status}


def opened_on(*objects, **more):
    return opened(ResourceQuotas, b.snapshot(b.node("n1", "A", 8), b.queue("q"), *objects), **more)


def job(name, cpu, least=1, gpus=0, **more):
    resources = {"cpu": cpu, "memory": "1Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}
    return b.pod_group(name, "q", least, min_resources=resources, **more)


def vote(plugin, name):
    gang = plugin.session.gangs.names.index(f"default/{name}")
    return plugin.job_enqueueable(gang, plugin.session.minimum(gang))


class TestReading:
    def test_requests_pods_and_extended_resources(self):
        hard = {
            "requests.cpu": "2",
            "cpu": 4,
            "memory": "1Gi",
            "limits.cpu": 9,
            "requests.nvidia.com/gpu": 3,
            "pods": 5,
            "count/jobs.batch": 1,
            "requests.storage": "1Gi",
        }
        (found,) = b.snapshot(quota(hard, {"cpu": "500m"})).resource_quotas
        assert found == ResourceQuota(
            namespace="default",
            name="team",
            hard={"cpu": 2000, "memory": 1024, "nvidia.com/gpu": 3, "pods": 5},
            used={"cpu": 500},
        )

    def test_scopes(self):
        selector = {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["b", "a"]},
                {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["c"]},
                {"scopeName": "BestEffort", "operator": "DoesNotExist"},
                {"scopeName": "NotTerminating"},
            ]
        }
        (found,) = b.snapshot(quota({}, scopes=["NotBestEffort"], scopeSelector=selector)).resource_quotas
        assert (found.priority_classes, found.other_classes) == (("a", "b"), ("c",))
        assert found.scopes == ("NotBestEffort", "!BestEffort", "NotTerminating")


class TestVote:
    def test_used_and_minimum_within_hard(self):
        plugin = opened_on(quota({"cpu": 10}, {"cpu": 6}), job("fits", 4), job("not", 5))
        assert vote(plugin, "fits") is Ballot.PERMIT
        short = vote(plugin, "not")
        assert (short.resource, short.requested, short.limit, short.allocated, short.short) == (
            "cpu",
            5000,
            10000,
            6000,
            1000,
        )
        assert short.whose == "namespace default (ResourceQuota team)"

    def test_cards_and_pods(self):
        plugin = opened_on(
            quota({"requests.nvidia.com/gpu": 2, "pods": 3}, {}), job("cards", 1, gpus=3), job("pods", 1, 4)
        )
        assert (vote(plugin, "cards").resource, vote(plugin, "cards").short) == ("nvidia.com/gpu", 1000)
        assert (vote(plugin, "pods").resource, vote(plugin, "pods").short) == ("pods", 1000)

    def test_what_was_admitted_in_this_session_counts(self):
        plugin = opened_on(quota({"cpu": 10}, {"cpu": 2}), job("one", 5), job("two", 5))
        assert vote(plugin, "one") is Ballot.PERMIT
        one = plugin.session.gangs.names.index("default/one")
        plugin.session.promised[one] = plugin.session.minimum(one)
        assert vote(plugin, "two").inqueue == 5000

    def test_another_namespace_is_no_matter(self):
        plugin = opened_on(quota({"cpu": 1}, {}, namespace="other"), job("x", 5))
        assert vote(plugin, "x") is Ballot.PERMIT

    @pytest.mark.parametrize(("compat", "permitted"), [(False, True), (True, False)])
    def test_pods_that_exist_are_counted_once(self, compat, permitted):
        objects = [job("x", 4, 2), *(b.pod(f"x-{i}", "x", cpu=2) for i in range(2))]
        plugin = opened_on(quota({"cpu": 4}, {"cpu": 4}), *objects, compat=compat)
        assert (vote(plugin, "x") is Ballot.PERMIT) is permitted

    def test_where_some_exist_the_rest_is_measured_by_the_average(self):
        objects = [job("x", 6, 3), b.pod("x-0", "x", cpu=2)]
        assert vote(opened_on(quota({"cpu": 6}, {"cpu": 2}), *objects), "x") is Ballot.PERMIT
        assert vote(opened_on(quota({"cpu": 5}, {"cpu": 2}), *objects), "x").requested == 4000

    def test_without_a_status_the_pods_of_the_namespace_count(self):
        runs = b.pod("r", None, cpu=3, card="A", count=2, node="n1", scheduler="other")
        ended = b.pod("e", None, cpu=3, node="n1", phase="Succeeded", scheduler="other")
        plugin = opened_on(quota({"cpu": 5, "requests.nvidia.com/gpu": 8}), runs, ended, job("x", 3, gpus=1))
        assert (vote(plugin, "x").allocated, vote(plugin, "x").short) == (3000, 1000)

    @pytest.mark.parametrize(
        ("spec", "applies"),
        [
            ({"scopes": ["NotBestEffort"]}, True),
            ({"scopes": ["BestEffort"]}, False),
            ({"scopes": ["Terminating"]}, False),
            ({"scopes": ["NotTerminating"]}, True),
            ({"scopes": ["PriorityClass"]}, True),
            (
                {
                    "scopeSelector": {
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["pc-low"]}]
                    }
                },
                True,
            ),
            (
                {
                    "scopeSelector": {
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["pc-high"]}]
                    }
                },
                False,
            ),
            (
                {
                    "scopeSelector": {
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["pc-low"]}]
                    }
                },
                False,
            ),
            (
                {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
                False,
            ),
        ],
    )
    def test_scopes(self, spec, applies):
        objects = [*b.priority_classes(), quota({"cpu": 1}, {}, **spec), job("x", 5, priority="pc-low")]
        assert (vote(opened_on(*objects), "x") is not Ballot.PERMIT) is applies
        assert vote(opened_on(*objects, compat=True), "x") is not Ballot.PERMIT, "upstream counts every gang"
