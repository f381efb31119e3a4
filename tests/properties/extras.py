"""What a random cluster holds for plugins that look at objects and annotations of their own."""

from __future__ import annotations

from tests import builders as b
from tests.properties.clusters import made

ZONE, GROUP = "volcano.sh/revocable-zone", "volcano.sh/nodegroup-name"
LATER = "DuringSchedulingIgnoredDuringExecution"


def with_extras(rng, objects):
    """The objects with some more of them, and more said on some."""
    for add, often in (
        (_budgets, 0.25),
        (_quotas, 0.35),
        (_tree, 0.35),
        (_zones, 0.3),
        (_groups, 0.2),
        (_cells, 0.25),
        (_devices, 0.15),
    ):
        if rng.random() < often:
            objects = add(rng, objects)
    return objects


def _of(objects, kind):
    return [body for body in objects if body["kind"] == kind]


def _waits(body):
    return not body["spec"].get("nodeName")


def _budgets(rng, objects):
    """PodDisruptionBudgets by what the pods are called."""
    found = []
    for i in range(rng.choice((1, 1, 2))):
        app = rng.choice("xyz")
        spec = rng.choice(({"minAvailable": rng.choice((0, 1, "50%"))}, {"maxUnavailable": rng.choice((0, 1, "34%"))}))
        spec = {**spec, "selector": {} if rng.random() < 0.2 else {"matchLabels": {"app": app}}}
        status = {"status": {"disruptionsAllowed": rng.choice((0, 1, 3))}} if rng.random() < 0.4 else {}
        found.append(made("PodDisruptionBudget", f"b{i}", api="policy/v1", spec=spec, **status))
    return [*objects, *found]


def _quotas(rng, objects):
    """A quota of the namespace, and jobs whose pods are still to be made."""
    for group in _of(objects, "PodGroup"):
        if rng.random() < 0.5:
            group["spec"]["minResources"] = {"cpu": rng.choice((1, 4)), "nvidia.com/gpu": rng.choice((0, 1, 4))}
    hard = {"requests.nvidia.com/gpu": rng.choice((1, 4, 16)), "requests.cpu": rng.choice((2, 64))}
    if rng.random() < 0.3:
        hard["pods"] = rng.choice((1, 8, 40))
    spec = {"hard": hard}
    if rng.random() < 0.3:
        spec["scopes"] = [rng.choice(("NotBestEffort", "BestEffort", "NotTerminating"))]
    used = {key: rng.choice((0, 1)) for key in hard}
    status = {"status": {"hard": hard, "used": used}} if rng.random() < 0.5 else {}
    late = range(rng.choice((0, 1, 2)))
    jobs = []
    queues = [body["metadata"]["name"] for body in _of(objects, "Queue")]
    for number in late:
        jobs += _late_job(rng, f"g{90 + number}", queues)
    return [*objects, *jobs, made("ResourceQuota", "rq", spec=spec, **status)]


def _late_job(rng, name, queues):
    """A Job that is admitted before it has pods, or only some of them."""
    least, owner = rng.randint(1, 3), b.owned_by("Job", name)
    there = rng.randint(0, least - 1)
    group = b.pod_group(
        name,
        rng.choice(queues),
        least,
        owner=owner,
        created=rng.randint(0, 2000),
        priority=rng.choice(("pc-low", "pc-high")),
        min_resources={"cpu": least, "memory": "1Gi", "nvidia.com/gpu": rng.choice((0, least))},
    )
    pods = [b.pod(f"{name}-w-{i}", name, owner=owner, cpu=1, memory="300Mi") for i in range(there)]
    return [b.job(name, "x", least, evicted=rng.choice(("AbortJob", ""))), group, *pods]


def _tree(rng, objects):
    """Places of the queues in a tree, by annotation."""
    for queue in _of(objects, "Queue"):
        if rng.random() < 0.6:
            path = rng.choice(("root/a", "root/a/b", "root/c", "root/c/d", f"root/c/{queue['metadata']['name']}"))
            weights = "/".join(str(rng.choice((1, 1, 2, 5))) for _ in path.split("/"))
            weights = weights if rng.random() < 0.95 else rng.choice(("1", "1/x", ""))
            notes = queue["metadata"].setdefault("annotations", {})
            notes |= {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return objects


def _zones(rng, objects):
    """Nodes that are lent, pods that may go there, and how many of a gang may be missing."""
    for node in _of(objects, "Node"):
        if rng.random() < 0.5:
            node["metadata"]["labels"][ZONE] = rng.choice(("day", "night"))
    for pod in _of(objects, "Pod"):
        if rng.random() < 0.4:
            pod["metadata"]["annotations"][ZONE] = "*"
    for group in _of(objects, "PodGroup"):
        if rng.random() < 0.4:
            kind = rng.choice(("jdb-min-available", "jdb-max-unavailable"))
            group["metadata"]["annotations"][f"volcano.sh/{kind}"] = rng.choice(("0", "1", "2", "50%", "soon"))
        if rng.random() < 0.2:
            group["metadata"]["annotations"]["volcano.sh/preemptable"] = "true"
    return objects


def _groups(rng, objects):
    """Groups of nodes, and queues that name them."""
    for node in _of(objects, "Node"):
        if rng.random() < 0.7:
            node["metadata"]["labels"][GROUP] = rng.choice("AB")
    for queue in _of(objects, "Queue"):
        affinity = {}
        for kind in ("nodeGroupAffinity", "nodeGroupAntiAffinity"):
            for need in ("required", "preferred"):
                if rng.random() < 0.35:
                    affinity.setdefault(kind, {})[f"{need}{LATER}"] = rng.choice((["A"], ["B"], ["A", "B"]))
        if affinity:
            queue["spec"]["affinity"] = affinity
    return objects


def _cells(rng, objects):
    """NUMA cells of some nodes, and pods that want theirs from one."""
    policies = ("best-effort", "restricted", "single-numa-node")
    policy, found = rng.choice(policies), []
    for node in _of(objects, "Node"):
        if rng.random() < 0.8:
            cpus = rng.choice((4, 8, 16))
            free = sorted(rng.sample(range(cpus), rng.randint(1, cpus)))
            spec = {
                "policies": {
                    "CPUManagerPolicy": rng.choice(("static", "static", "static", "none")),
                    "TopologyManagerPolicy": rng.choice((policy, policy, *policies)),
                },
                "numares": {"cpu": {"allocatable": ",".join(map(str, free)), "capacity": cpus}},
                "cpuDetail": {
                    str(i): {"numa": i * 2 // cpus, "socket": i * 2 // cpus, "core": i // 2} for i in range(cpus)
                },
            }
            if rng.random() < 0.3:
                spec["resReserved"] = {"cpu": rng.choice(("1", "1500m"))}
            name = node["metadata"]["name"]
            found.append(made("Numatopology", name, api="nodeinfo.volcano.sh/v1alpha1", spec=spec))
    for pod in _of(objects, "Pod"):
        if rng.random() < 0.5:
            pod["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = policy
    return [*objects, *found]


def _devices(rng, objects):
    """Nodes with devices, gangs that ask for some of them; ``gpu-memory`` and virtual ones side by side."""
    for node in _of(objects, "Node"):
        if rng.random() < 0.8:
            count = rng.choice((1, 2, 3))
            node["status"]["allocatable"] |= {
                "volcano.sh/gpu-number": count,
                "volcano.sh/gpu-memory": 10 * count,
                "volcano.sh/vgpu-number": 4 * count,
                "volcano.sh/vgpu-memory": 40 * count,
                "volcano.sh/vgpu-cores": 100 * count,
            }
            name = node["metadata"]["name"]
            cards = "".join(f"{name}-u{i},{rng.choice((2, 4))},40,T,true,0:" for i in range(count))
            node["metadata"].setdefault("annotations", {})["volcano.sh/node-vgpu-register"] = cards
            if rng.random() < 0.2:
                node["metadata"]["annotations"]["volcano.sh/gpu-unhealthy-ids"] = "0"
    wishes = (
        {"gpu-memory": 4},
        {"gpu-memory": 7},
        {"gpu-number": 1},
        {"vgpu-number": 1, "vgpu-memory": 15},
        {"vgpu-number": 2, "vgpu-cores": 50},
        {"vgpu-number": 1, "vgpu-memory-percentage": 30, "vgpu-cores": 30},
    )
    of_gang = {}
    for pod in _of(objects, "Pod"):
        gang = pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name", "")
        wish = of_gang.setdefault(gang, rng.choice(wishes) if rng.random() < 0.5 else {})
        for name, count in wish.items():
            for amounts in pod["spec"]["containers"][0]["resources"].values():
                amounts[f"volcano.sh/{name}"] = count
        if wish and not _waits(pod) and rng.random() < 0.3:
            pod["metadata"]["annotations"]["volcano.sh/gpu-index"] = rng.choice(("0", "1", "0,1"))
    return objects
