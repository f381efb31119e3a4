"""Every argument of every plugin and action is read and has a say: some random cluster is decided otherwise with it.

What is declared as accepted without effect is left out, and must say so where it is declared.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml

from scheduler_core import run_session
from scheduler_core.actions import ACTIONS
from scheduler_core.framework.extender_client import ExtenderError
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.result import dump
from scheduler_core.state.status import PENDING
from tests import builders as b
from tests.architecture import sources
from tests.core.open_session import opened
from tests.properties.clusters import random_cluster
from tests.properties.drawn import STEP, Service
from tests.properties.extras import with_extras
from tests.reference.aftermath import carry_out

# The first clusters of so many that are tried for each argument.
CLUSTERS = 100
NO_EFFECT = ("accepted", "changes nothing")
WINDOWS = {"tdm.revocable-zone.day": "02:00-20:00", "tdm.revocable-zone.night": "20:00-06:00"}
ASKED = {"extender.urlPrefix": "http://extender.test"}
BENT = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
SHARED = {"deviceshare.GPUSharingEnable": True}
TREE = {"enableHierarchy": True}
UNKNOWN = {"podOwnerReferenceToServiceType": {"ReplicaSet": "inference", "Job": "training"}}
MOVES = {"thresholds": {"cpu": 40, "cards": 60}, "targetThresholds": {"cpu": 40, "cards": 60}}

# (plugin or action, argument) -> the other value, and what it needs beside it: arguments, switches, actions, plugins.
OTHERWISE = {
    ("binpack", "binpack.weight"): (100, {}),
    ("binpack", "binpack.cpu"): (100, {}),
    ("binpack", "binpack.memory"): (100, {}),
    ("binpack", "binpack.resources"): ("nvidia.com/gpu", {}),
    ("binpack", "binpack.resources.<name>"): (50, {"arguments": {"binpack.resources": "nvidia.com/gpu"}}),
    ("capacity-card", "overCommitFactor"): (2, {}),
    ("capacity-card", "cardUnlimitedCpuMemory"): (True, {}),
    ("capacity-card", "podOwnerReferenceToServiceType"): (UNKNOWN["podOwnerReferenceToServiceType"], {}),
    ("capacity-card", "unknownReclaimer"): ("allow", {"arguments": {"overCommitFactor": 2}}),
    ("capacity-card", "tidePreempt"): (True, {"arguments": {"overCommitFactor": 2, **UNKNOWN}, "actions": ["preempt"]}),
    ("card-model", "rareCards"): (["H200", "A100"], {}),
    ("coscheduling", "waitSeconds"): (5.0, {}),
    ("deviceshare", "deviceshare.GPUSharingEnable"): (True, {}),
    ("deviceshare", "deviceshare.GPUNumberEnable"): (True, {}),
    ("deviceshare", "deviceshare.VGPUEnable"): (True, {}),
    ("deviceshare", "deviceshare.SchedulePolicy"): (
        "binpack",
        {"arguments": {**SHARED, "deviceshare.ScheduleWeight": 9}},
    ),
    ("deviceshare", "deviceshare.ScheduleWeight"): (
        99,
        {"arguments": {**SHARED, "deviceshare.SchedulePolicy": "binpack"}},
    ),
    ("extender", "extender.urlPrefix"): (
        "http://other.test",
        {"arguments": {**ASKED, "extender.predicateVerb": "predicate"}},
    ),
    ("extender", "extender.httpTimeout"): ("7s", {"arguments": {**ASKED, "extender.predicateVerb": "predicate"}}),
    ("extender", "extender.onSessionOpenVerb"): ("open", {"arguments": ASKED}),
    ("extender", "extender.onSessionCloseVerb"): ("close", {"arguments": ASKED}),
    ("extender", "extender.predicateVerb"): ("predicate", {"arguments": ASKED}),
    ("extender", "extender.prioritizeVerb"): ("prioritize", {"arguments": ASKED}),
    ("extender", "extender.preemptableVerb"): (
        "preemptable",
        {"arguments": ASKED, "actions": ["preempt"], "first": True},
    ),
    ("extender", "extender.reclaimableVerb"): ("reclaimable", {"arguments": ASKED, "first": True}),
    ("extender", "extender.queueOverusedVerb"): ("queueOverused", {"arguments": ASKED}),
    ("extender", "extender.jobEnqueueableVerb"): ("jobEnqueueable", {"arguments": ASKED}),
    ("extender", "extender.jobReadyVerb"): ("jobReady", {"arguments": ASKED}),
    ("extender", "extender.ignorable"): (True, {"arguments": {**ASKED, "extender.predicateVerb": "nobody-answers"}}),
    ("extender", "extender.managedResources"): (
        ["nvidia.com/gpu"],
        {"arguments": {**ASKED, "extender.predicateVerb": "predicate"}},
    ),
    ("fragmentation", "weight"): (1000, {}),
    ("fragmentation", "popularity"): (1, {}),
    ("nodegroup", "strict"): (False, {}),
    ("nodeorder", "leastrequested.weight"): (0, {}),
    ("nodeorder", "mostrequested.weight"): (9, {}),
    ("nodeorder", "balancedresource.weight"): (50, {}),
    ("nodeorder", "tainttoleration.weight"): (50, {}),
    ("overcommit", "overcommit-factor"): (1.0, {}),
    ("predicates", "predicate.NodeAffinityEnable"): (False, {}),
    ("predicates", "predicate.TaintTolerationEnable"): (False, {}),
    ("predicates", "predicate.PodAffinityEnable"): (False, {}),
    ("requested-to-capacity-ratio", "functionshape"): (BENT, {"arguments": {"weight": 100}}),
    ("requested-to-capacity-ratio", "resourcetoweightmap"): ({"nvidia.com/gpu": 1}, {"arguments": {"weight": 100}}),
    ("requested-to-capacity-ratio", "weight"): (100, {}),
    ("requested-to-capacity-ratio", "maxScore"): (100, {"arguments": {"weight": 3}}),
    ("rescheduling", "interval"): ("1s", {"arguments": MOVES, "actions": ["shuffle"]}),
    ("rescheduling", "thresholds"): ({"cpu": 40, "cards": 60}, {"actions": ["shuffle"]}),
    ("rescheduling", "targetThresholds"): (
        {"cpu": 30, "cards": 40},
        {"actions": ["shuffle"], "arguments": {"thresholds": {"cpu": 30, "cards": 40}}},
    ),
    ("reservation", "waitingSeconds"): (9000.0, {"actions": ["elect", "reserve"]}),
    ("sla", "sla-waiting-time"): ("30m", {}),
    ("task-topology", "task-topology.weight"): (1000, {}),
    ("tdm", "tdm.revocable-zone.<zone>"): ("00:00-24:00", {"key": "tdm.revocable-zone.day"}),
    ("tdm", "tdm.evict.period"): (
        "1s",
        {
            "arguments": {"tdm.revocable-zone.day": "00:00-00:01", "tdm.revocable-zone.night": "00:00-00:01"},
            "actions": ["shuffle"],
        },
    ),
    ("tdm", "tdm.timezone"): ("Asia/Shanghai", {"arguments": WINDOWS}),
    ("allocate", "podMaxInUnschedulableSeconds"): (1.0, {"plugins": ["priority-sort"]}),
    ("allocate", "assumeSeconds"): (2.0, {"plugins": ["priority-sort"]}),
    ("preempt", "reservationSeconds"): (9.0, {"actions": ["preempt"]}),
    ("preempt", "enableTopologyAwarePreemption"): (True, {"actions": ["preempt"]}),
    ("gangpreempt", "allowWholeBundle"): (False, {"actions": ["gangpreempt"]}),
    ("gangpreempt", "reservationSeconds"): (9.0, {"actions": ["gangpreempt"]}),
    ("reclaim", "reservationSeconds"): (9.0, {}),
    ("reclaim", "cooldownSeconds"): (5.0, {}),
    ("gangreclaim", "allowWholeBundle"): (False, {"actions": ["gangreclaim"]}),
    ("gangreclaim", "reservationSeconds"): (9.0, {"actions": ["gangreclaim"]}),
}
# Clusters are seldom drawn that show these: the test or story that does.
SHOWN = {
    (
        "allocate",
        "podInitialBackoffSeconds",
    ): "tests/core/actions/test_pod_cycle.py::test_how_long_a_pod_waits_before_it_is_tried_again",
    (
        "allocate",
        "podMaxBackoffSeconds",
    ): "tests/core/actions/test_pod_cycle.py::test_how_long_a_pod_waits_before_it_is_tried_again",
    ("allocate", "interleaveZones"): "tests/core/actions/test_pod_cycle.py::test_zones_take_turns_between_equal_nodes",
    ("capacity", "ancestorReclaimLevel"): "tests/core/plugins/test_capacity.py::test_an_ancestor_may_lend_its_line",
    (
        "capacity-card",
        "nodeOrderWeight",
    ): "tests/core/plugins/test_capacity_card.py::test_the_leftmost_card_that_a_node_has_scores",
    ("card-model", "weight"): "tests/core/plugins/test_card_model.py::test_how_much_a_preferred_model_weighs",
    ("nodegroup", "enablePreferredOrder"): "tests/core/plugins/test_nodegroup.py::test_what_a_queue_prefers",
    ("nodeorder", "nodeaffinity.weight"): "tests/core/plugins/test_nodeorder.py::test_preferred_nodes",
    ("nodeorder", "podaffinity.weight"): "tests/core/plugins/test_pod_affinity.py::test_preferred_terms",
    ("nodeorder", "imagelocality.weight"): "tests/core/plugins/test_nodeorder.py::test_images_that_are_there",
    ("nodeorder", "podtopologyspread.weight"): "tests/core/plugins/test_topology_spread.py::test_soft_constraints",
    ("numa-aware", "weight"): "tests/core/plugins/test_numa_aware.py::test_fewer_cells_score_higher",
    (
        "predicates",
        "predicate.NodePortsEnable",
    ): "tests/core/plugins/test_predicates.py::test_ports_can_be_switched_off",
    (
        "predicates",
        "predicate.NodeVolumeLimitsEnable",
    ): "tests/core/plugins/test_volumes.py::test_a_filter_can_be_switched_off",
    (
        "predicates",
        "predicate.VolumeZoneEnable",
    ): "tests/core/plugins/test_volumes.py::test_a_filter_can_be_switched_off",
    (
        "predicates",
        "predicate.VolumeBindingEnable",
    ): "tests/core/plugins/test_volumes.py::test_a_filter_can_be_switched_off",
    (
        "predicates",
        "predicate.PodTopologySpreadEnable",
    ): "tests/core/plugins/test_topology_spread.py::test_the_filter_can_be_switched_off",
    (
        "preempt",
        "minCandidateNodesPercentage",
    ): "tests/golden/preempt.yaml::As upstream it tries as few nodes as it is told to",
    ("preempt", "minCandidateNodesAbsolute"): "tests/golden/preempt.yaml::As upstream it tries at least so many",
    ("preempt", "maxCandidateNodesAbsolute"): "tests/golden/preempt.yaml::As upstream it tries at most so many",
    ("usage", "usage.weight"): "tests/core/plugins/test_usage.py::test_the_less_loaded_the_better",
    ("usage", "cpu.weight"): "tests/core/plugins/test_usage.py::test_the_less_loaded_the_better",
    ("usage", "memory.weight"): "tests/core/plugins/test_usage.py::test_the_less_loaded_the_better",
    ("usage", "thresholds"): "tests/core/plugins/test_usage.py::test_loaded_nodes_take_nobody",
}


class Listening(Service):
    """The extender's service; it notes what it was asked, and how long it had."""

    def __init__(self) -> None:
        self.heard = []

    def post(self, url, body, timeout):
        self.heard.append((url, timeout))
        if url.endswith(("open", "close")):
            return b"{}"
        if url.endswith("nobody-answers"):
            raise ExtenderError("nobody is there")
        return super().post(url, body, timeout)


def declared():
    for owners in (PLUGINS, ACTIONS):
        for owner, cls in owners.items():
            for argument in cls.arguments:
                if not any(words in argument.doc for words in NO_EFFECT):
                    yield owner, argument.name


def written(owner, arguments, needs):
    """The text of a policy in which the owner is told so."""
    card = {"overCommitFactor": 2, "cardUnlimitedCpuMemory": True, **UNKNOWN}
    told = {} if owner in ACTIONS else {owner: arguments}
    names = ["priority", "gang", "conformance", "predicates", "capacity-card", "nodeorder"]
    names = [name for name in names if name != "capacity-card" or needs.get("quota", True)]
    names = [name for name in names if name != "nodeorder" or needs.get("scores", True)]
    names += [name for name in (*told, *needs.get("plugins", ())) if name not in names]
    entries = []
    for name in names:
        given = told.get(name, card if name == "capacity-card" else None)
        off = {"enableReclaimable": False, "enablePreemptable": False} if name == "gang" else {}
        switches = needs.get("switches", {}) if name == owner else off
        entries.append({"name": name, **switches, **({"arguments": given} if given else {})})
    if needs.get("first"):
        entries.insert(0, entries.pop())
    actions = ["enqueue", "allocate", *needs.get("actions", ()), "backfill", "reclaim"]
    rules = {
        "actions": ", ".join(actions),
        "tiers": [{"plugins": entries[:3]}, {"plugins": entries[3:]}],
        **({"configurations": [{"name": owner, "arguments": arguments}]} if owner in ACTIONS else {}),
        **({"compatibility": "volcano"} if needs.get("compat") else {}),
    }
    return json.dumps(rules)


def thought(given, rules, now):
    """Filters and scores of every kind of task that waits, before anything is decided."""
    session, found = opened(given, rules, now=now), []
    for task in (session.tasks.live & (session.tasks.status == PENDING)).nonzero()[0].tolist():
        cls = session.cluster.class_of(task)
        view, every = session.candidates.view(cls), slice(None)
        found += [view.allowed.tobytes(), view.allowed_now.tobytes()]
        answers = [call(cls, every) for _, call in session.hooks.flat("node_order")]
        answers += [call(task) for _, call in session.hooks.flat("task_node_order")]
        found += [answer.tobytes() for answer in answers if answer is not None]
    return found


def decided(seed, text):
    """Everything that two sessions think, decide and remember, and what the extender heard."""
    rng = random.Random(seed)
    objects, _, now = random_cluster(rng)
    objects, memory = with_extras(rng, objects), None
    service, rules = Listening(), parse_policy(text)
    found = [] if "extender" in text else thought(b.snapshot(objects), rules, now)
    for number in range(2):
        moment = now + number * STEP
        result, memory = run_session(b.snapshot(objects), rules, now=moment, memory=memory, extenders=service)
        found += [dump(result), memory]
        objects = carry_out(objects, result, moment - b.now(0))
    return found, service.heard


def test_each_argument_is_here():
    assert set(declared()) == OTHERWISE.keys() | SHOWN.keys()


@pytest.mark.parametrize("place", sorted(set(SHOWN.values())))
def test_it_is_shown_elsewhere(place):
    file, _, name = place.partition("::")
    path = Path(__file__).parents[2] / file
    assert name in (
        sources.tests_of(path) if path.suffix == ".py" else yaml.load(path.read_text(), yaml.CSafeLoader)["cases"]
    )


@pytest.mark.parametrize(("owner", "name"), list(OTHERWISE), ids=[" ".join(key) for key in OTHERWISE])
def test_it_has_a_say(owner, name):
    value, needs = OTHERWISE[owner, name]
    beside = needs.get("arguments", {})
    key = needs.get("key", name.replace("<name>", "nvidia.com/gpu"))
    without, given = written(owner, beside, needs), written(owner, {**beside, key: value}, needs)
    assert any(decided(seed, without) != decided(seed, given) for seed in range(CLUSTERS))
