"""One field of one object is broken: only what depends on the object waits, and a finding names it."""

import copy
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from scheduler_core import run_session
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import builders as b
from tests.properties.clusters import random_cluster
from tests.properties.drawn import Service
from tests.properties.extras import with_extras
from tests.properties.policies import random_policy
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.paths import WATCHED

SNAPSHOTS = int(os.environ.get("BROKEN_SNAPSHOTS", "50"))
WRONG = ("-4", "many", "2026-13-45", {"no": ["such"]}, ["no"], -7, 2**40, "1e", True, "")
BAD_TYPE = {"volcano.sh/service.type": "neither"}
BAD_NOTE = BAD_TYPE | {"volcano.sh/preemptable": "false"}
BAD_KIND = {"tidesched.io/service-type": "neither"}
BAD_QUOTA = {"volcano.sh/card.quota": "no JSON"}
BAD_SHARE = {"tidesched.io/card-milli": "most of it"}


def named(obj):
    space = obj["metadata"].get("namespace")
    return f"{space}/{obj['metadata']['name']}" if space else obj["metadata"]["name"]


def places(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if (*path, key) not in {("kind",), ("apiVersion",), ("metadata", "name"), ("metadata", "namespace")}:
            yield value, key
            yield from places(inner, (*path, key))


def broken(rng, objects):
    """The objects with one of them broken, its place, what is told of it, and the object without what is broken; None
    where it stays readable."""
    at = rng.randrange(len(objects))
    changed = json.loads(json.dumps(objects))
    found = list(places(changed[at]))
    if not found:
        return None
    holder, key = rng.choice(found)
    holder[key] = {"is": "broken"}
    rest = without_marked(changed[at])
    holder[key] = copy.deepcopy(rng.choice(WRONG))
    before = {finding.object for finding in b.taken(objects).findings}
    told = [finding for finding in b.taken(changed).findings if finding.object not in before]
    return (changed, at, told, rest) if told and told[0].severity == "error" else None


def without_marked(value):
    if isinstance(value, dict):
        return {key: without_marked(item) for key, item in value.items() if item != {"is": "broken"}}
    return [without_marked(item) for item in value if item != {"is": "broken"}] if isinstance(value, list) else value


def noted(obj, notes):
    made = copy.deepcopy(obj)
    made["metadata"].setdefault("annotations", {}).update(notes)
    return made


def marks(told):
    """Whether what is wrong is one annotation or label: all else of a pod counts."""
    return told[0].path.startswith(("metadata.annotations[", "metadata.labels["))


def without(objects, at, told, left):
    """What the session has to decide as: of the object is there what is ``left``, what depends on it waits, and nothing
    of that is a victim."""
    obj, rest = objects[at], [*objects[:at], *objects[at + 1 :]]
    kind = obj["kind"]
    if kind == "Queue":
        wrong = BAD_KIND if "volcano.sh/card.quota" in left["metadata"].get("annotations", {}) else BAD_QUOTA
        return [*rest, noted(left | {"spec": left.get("spec", {}) | {"reclaimable": False}}, wrong)]
    if kind == "PriorityClass":
        return [*valued(rest, obj, left), {"preemptionPolicy": "Never", "value": 0} | left]
    if kind == "PodDisruptionBudget":
        selector = left.get("spec", {}).get("selector", {})
        return [*rest, left | {"spec": {"selector": selector}, "status": {"disruptionsAllowed": 0}}]
    if kind in ("Namespace", "ResourceQuota"):
        return [*rest, left]
    if kind in ("PodGroup", "Job"):
        own = [one["kind"] in ("PodGroup", "Job") and named(one) == named(obj) for one in objects]
        return [noted(one, BAD_NOTE) if mine else one for one, mine in zip(objects, own, strict=True)]
    if kind != "Pod":
        return rest
    if marks(told) and "card-milli" not in told[0].path:
        return [*rest, noted(left, BAD_NOTE)]
    gang = next(pod.group for pod in b.taken(objects).pods if pod.key == named(obj))
    mates = {pod.key for pod in b.taken(objects).pods if pod.group == gang and gang}
    rest = [noted(one, BAD_SHARE) if one["kind"] == "Pod" and named(one) in mates else one for one in rest]
    group = f"{obj['metadata'].get('namespace', 'default')}/{gang}"
    rest = [noted(one, BAD_TYPE) if one["kind"] == "PodGroup" and named(one) == group else one for one in rest]
    node = obj.get("spec", {}).get("nodeName")
    if not node or obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return rest
    closed = copy.deepcopy(rest)
    for one in closed:
        if one["kind"] == "Node" and one["metadata"]["name"] == node:
            amounts = one.setdefault("status", {})
            amounts.setdefault("allocatable" if "allocatable" in amounts else "capacity", {})["pods"] = "0"
    return closed


def valued(objects, obj, left):
    """Gangs of a class, which wait and stay where it is not known what they are worth."""
    names = unknown(obj, left)
    found = []
    for one in objects:
        spec = one.get("spec") or {}
        own = spec.get("priorityClassName", "") in names and "priority" not in spec
        found.append(noted(one, BAD_NOTE) if own and one["kind"] in ("Pod", "PodGroup") else one)
    return found


def unknown(obj, left):
    """Classes of unknown value where one is broken; none is named where the default is not known."""
    if "globalDefault" not in left:
        return {obj["metadata"]["name"], ""}
    return set() if "value" in left else {obj["metadata"]["name"]}


def dependent(objects, at, left):
    """Names of the gangs that depend on an object."""
    obj, seen = objects[at], b.taken(objects)
    if obj["kind"] == "Pod":
        return {pod.group_key for pod in seen.pods if pod.key == named(obj)}
    name = obj["metadata"]["name"]
    if obj["kind"] == "Queue":
        return {group.key for group in seen.pod_groups if group.queue == name}
    if obj["kind"] == "PriorityClass":
        names = unknown(obj, left)
        of_pods = {pod.group_key for pod in seen.pods if pod.priority_class in names}
        return of_pods | {group.key for group in seen.pod_groups if group.priority_class in names}
    return {g.key for g in seen.pod_groups if named(obj) in (g.key, f"{g.namespace}/{g.owner_name}")}


def others(result, objects, gangs):
    """Decisions about all gangs but the given ones."""
    of = {pod.key: pod.group_key for pod in b.taken(objects).pods}
    known = {group.key for group in b.taken(objects).pod_groups} - gangs
    return {
        "binds": {bind.pod: bind.node for bind in result.binds if of[bind.pod] not in gangs},
        "evictions": sorted(e.pod for e in result.evictions if of[e.pod] not in gangs),
        "phases": {g.name: g.phase.value for g in result.podgroups if g.name in known},
    }


def comparable(objects, at, told, left, policy):
    """Whether what is left of the object says whose it is, and no more depends on it than its own gang."""
    if objects[at]["kind"] != "Pod":
        return told[0].code != "misconfigured" and "metadata" in left
    own = dependent(objects, at, left)
    mates = [pod for pod in b.taken(objects).pods if pod.group_key in own and pod.key != named(objects[at])]
    bound = [pod for pod in mates if pod.node]
    names = {option.name for tier in policy.tiers for option in tier}
    # That plugin scores by what all waiting pods ask for; in the oracle those beside the broken one do not say it.
    return (
        told[0].path not in ("", "metadata", "metadata.annotations", "spec", "spec.schedulerName")
        and not bound
        and "fragmentation" not in names
    )


def drawn(seed):
    """A cluster of the seed with one broken object, and the policy."""
    rng = random.Random(seed)
    while True:
        objects, options, now = random_cluster(rng)
        objects = with_extras(rng, objects)
        policy = parse_policy(random_policy(rng, options))
        for _ in range(20):
            spoilt = broken(rng, objects)
            if spoilt and comparable(objects, *spoilt[1:], policy):
                return objects, *spoilt, policy, now


@pytest.mark.parametrize("seed", range(SNAPSHOTS))
def test_what_is_broken_hurts_only_what_depends_on_it(seed):
    objects, changed, at, told, left, policy, now = drawn(seed)
    result, _ = run_session(b.taken(changed), policy, now=now, extenders=Service(), check=True)
    expected, _ = run_session(
        b.taken(without(objects, at, told, left)), policy, now=now, extenders=Service(), check=True
    )
    assert told[0].fix
    assert told[0] in result.findings
    gangs = dependent(objects, at, left)
    assert others(result, objects, gangs) == others(expected, objects, gangs), (objects[at]["kind"], told)


@pytest.mark.parametrize("seed", range(0, 100, 5))
def test_on_the_command_line(seed, tmp_path: Path):
    _, changed, _, told, *_ = drawn(seed)
    (tmp_path / "cluster.json").write_text(json.dumps(b.listing(*changed)))
    (tmp_path / "policy.conf").write_text(FOUNDING_POLICY)
    command = [sys.executable, "-m", "scheduler_core", "run", "--snapshot", "cluster.json", "--conf", "policy.conf"]
    where = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}}
    done = subprocess.run([*command, "--output", "json"], capture_output=True, text=True, check=False, **where)
    assert done.returncode == 0, done.stderr
    assert told[0].to_json() in json.loads(done.stdout)["findings"]


@pytest.mark.parametrize("seed", range(0, SNAPSHOTS, 10))
def test_through_the_live_cache(seed):
    _, changed, _, told, *_ = drawn(seed)
    cache = ClusterCache(cast("Any", None), schedulers=("tidesched", "volcano"))
    kinds, live = {kind.id: kind for kind in WATCHED}, []
    for version, obj in enumerate(changed, start=1):
        if obj["kind"] in kinds and isinstance(obj.get("metadata"), dict) and obj["metadata"].get("name"):
            live.append({**obj, "metadata": {"uid": "u", **obj["metadata"], "resourceVersion": str(version)}})
            cache.change(kinds[obj["kind"]], "ADDED", live[-1])
    read, snapshot = b.taken(live), cache.snapshot()
    assert snapshot.findings == read.findings
    assert [group.problem for group in snapshot.pod_groups] == [group.problem for group in read.pod_groups]
    assert told[0] in snapshot.findings or told[0].object.partition(" ")[0] not in kinds
