"""Random clusters: cards of every kind, gangs that run and gangs that wait, and now and then something odd."""

from __future__ import annotations

from tests import builders as b

WHOLE, OTHER = "A100", "H200"
SLICE = f"{WHOLE}/mig-1g.5gb-mixed"
SHARE = f"{OTHER}/mps-80g*1/4"
CARDS = (WHOLE, OTHER, SLICE, SHARE)
OWNER_KINDS = {"training": "Job", "inference": "ReplicaSet", "unknown": "StatefulSet"}
POLICIES = ("AbortJob", "RestartJob", "")
LATE = "WaitForFirstConsumer"
CLASSES = ("pc-high", "pc-medium", "pc-normal", "pc-low")


class Room:
    """What is left of the nodes while running pods are laid out, so that a random cluster is one that can be."""

    def __init__(self, nodes):
        self.cards = {name: {card: [1000] * count for card, count in cards.items()} for name, cards in nodes.items()}

    def take(self, node, card, count, milli):
        """Take whole cards or a share on one node; False when there is no room."""
        free = self.cards[node].get(card, [])
        fitting = [i for i, left in enumerate(free) if left >= (milli or 1000)]
        wanted = 1 if milli else count
        if len(fitting) < wanted:
            return False
        for i in fitting[:wanted]:
            free[i] -= milli or 1000
        return True


def random_cluster(rng, *, flood=None):
    """Objects of one cluster, options of the policy, and the time of the session.

    Args:
        flood: training holds the cards and inference wants them back (default: in nine of ten clusters, most of
            them without any oddity, see :func:`storm`).
    """
    if flood is None and rng.random() < 0.78:
        return storm(rng)
    flood = rng.random() < 0.67 if flood is None else flood
    objects = b.priority_classes()
    nodes = {}
    for i in range(rng.randint(1, 5)):
        objects.append(_node(rng, f"n{i}", nodes, flood))
    queues = [_queue(rng, f"q{i}", flood, inference=i % 2 == 0 if flood else None) for i in range(rng.randint(2, 5))]
    objects += queues
    room = Room(nodes)
    for i in range(rng.randint(4, 9) if flood else rng.randint(2, 8)):
        objects += _gang(rng, f"g{i}", [q["metadata"]["name"] for q in queues], nodes, room, flood)
    if rng.random() < 0.2:
        where = rng.choice(sorted(nodes))
        objects.append(b.pod("foreign", scheduler="default-scheduler", node=where, cpu=rng.choice((1, 16))))
    if rng.random() < 0.3:
        objects += [_measured(rng, name) for name in sorted(nodes) if rng.random() < 0.7]
    if rng.random() < 0.15:
        objects += _storage(rng, [body for body in objects if body["kind"] == "Pod"], sorted(nodes))
    options = {
        "overCommitFactor": rng.choice((1.0, 1.5, 2.0, 2.0, 4.0)),
        "cardUnlimitedCpuMemory": rng.random() < 0.7,
        "unknownReclaimer": rng.choice(("deny", "deny", "allow")),
    }
    return objects, options, b.now(10_000)


def storm(rng):
    """A flood that is mostly as it should be: training fills the cards, inference may have them and asks for some.

    Mostly: some gangs are protected, some ask for more than there is, some quotas are small.
    """
    objects, nodes = b.priority_classes(), {}
    for i in range(rng.randint(2, 4)):
        card, count = rng.choice((WHOLE, WHOLE, OTHER)), rng.choice((2, 4))
        nodes[f"n{i}"] = {card: count}
        objects.append(b.node(f"n{i}", card, count, cpu=64, memory="64Gi"))
    cards = sorted({card for there in nodes.values() for card in there})
    for i in range(rng.randint(2, 4)):
        kind = b.INFERENCE if i % 2 == 0 else b.TRAINING
        sizes = (16, 16, 16, 2) if i % 2 == 0 else (16,)
        quota = {card: rng.choice(sizes) for card in cards}
        objects.append(b.queue(f"q{i}", quota, **kind, created=rng.randint(0, 2)))
    queues = [o["metadata"]["name"] for o in objects if o["kind"] == "Queue"]
    room = Room(nodes)
    for i in range(rng.randint(3, 7)):
        objects += _storm_gang(rng, f"g{i}", queues[1::2], nodes, room)
    for i in range(7, 7 + rng.randint(1, 3)):
        objects += _storm_claim(rng, f"g{i}", queues[::2], cards)
    options = {
        "overCommitFactor": rng.choice((2.0, 4.0)),
        "cardUnlimitedCpuMemory": rng.random() < 0.7,
        "unknownReclaimer": "deny",
    }
    return objects, options, b.now(10_000)


def _storm_gang(rng, name, queues, nodes, room):
    """Training that runs, where there is room for it; one in seven may not be taken."""
    request = {"cpu": "1", "memory": "1Gi", "card": rng.choice(sorted({c for there in nodes.values() for c in there}))}
    request["count"] = rng.choice((1, 1, 2))
    owner, created = b.owned_by("Job", name), rng.randint(0, 2000)
    pods = []
    for i in range(rng.randint(1, 3)):
        node = _laid_out(rng, request, nodes, room)
        if node:
            started = created + rng.randint(1, 5000)
            born = {"owner": owner, "created": created, "started": started}
            pods.append(b.pod(f"{name}-w-{i}", name, node=node, priority="pc-low", **born, **request))
    if not pods:
        return []
    least = rng.choice((len(pods), len(pods), 1))
    kept = "false" if rng.random() < 0.14 else None
    group = b.pod_group(
        name,
        rng.choice(queues),
        least,
        priority="pc-low",
        created=created,
        owner=owner,
        phase="Running",
        preemptable=kept,
        service_type="training",
    )
    return [b.job(name, "x", len(pods), evicted=rng.choice(POLICIES), min_available=least), group, *pods]


def _storm_claim(rng, name, queues, cards):
    """Inference that waits."""
    wanted, created = rng.randint(1, 3), rng.randint(0, 2000)
    request = {"cpu": "1", "memory": "1Gi", "card": rng.choice(cards), "count": rng.choice((1, 2, 2, 4))}
    owner, least = b.owned_by("ReplicaSet", name), rng.choice((1, wanted))
    group = b.pod_group(
        name, rng.choice(queues), least, priority="pc-high", created=created, owner=owner, service_type="inference"
    )
    pods = [
        b.pod(f"{name}-w-{i}", name, priority="pc-high", owner=owner, created=created, **request) for i in range(wanted)
    ]
    return [group, *pods]


def _measured(rng, name):
    """What was measured on a node, now and then too long ago."""
    use = {"cpu": rng.choice(("1", "3", "14", "60")), "memory": rng.choice(("1Gi", "50Gi"))}
    body = _object("NodeMetrics", name, timestamp=b.at(rng.choice((9_990, 9_990, 9_000))), usage=use)
    return {**body, "apiVersion": "metrics.k8s.io/v1beta1"}


def _storage(rng, pods, nodes):
    """Claims for some of the pods, volumes and classes; also what cannot be bound."""
    for body in pods:
        if rng.random() < 0.3:
            claims = rng.sample(range(4), rng.choice((1, 1, 2)))
            mounts = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in claims]
            body["spec"]["volumes"] = mounts
    made = [
        _object("StorageClass", "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode=LATE),
        _object("StorageClass", "made", provisioner="d", volumeBindingMode=LATE),
        _object("StorageClass", "early", provisioner="d"),
    ]
    for i in range(rng.randint(0, 4)):
        line = {"key": "kubernetes.io/hostname", "operator": "In", "values": [rng.choice(nodes)]}
        spec = {"capacity": {"storage": rng.choice((5, 10))}, "accessModes": ["ReadWriteOnce"]}
        if rng.random() < 0.7:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}
        if rng.random() < 0.5:
            spec["csi"] = {"driver": "d", "volumeHandle": f"h{i}"}
        made.append(_object("PersistentVolume", f"v{i}", spec={**spec, "storageClassName": "local"}))
    for i in range(4):
        spec = {"accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))]}
        spec["resources"] = {"requests": {"storage": rng.choice((1, 7))}}
        if rng.random() < 0.3:
            spec["volumeName"] = f"v{rng.randint(0, 3)}"
        spec["storageClassName"] = rng.choice(("local", "local", "made", "made", "early"))
        made.append(_object("PersistentVolumeClaim", f"c{i}", spec=spec))
    return made


def _object(kind, name, **fields):
    return made(kind, name, api="storage.k8s.io/v1" if kind == "StorageClass" else "v1", **fields)


def made(kind, name, *, api="v1", **fields):
    """An object that has no builder."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def _node(rng, name, nodes, flood):
    kind = rng.choice(("whole", "whole", "whole", "other") if flood else ("whole", "other", "mig", "mps", "cpu"))
    if flood and rng.random() < 0.15:
        kind = rng.choice(("mig", "mps"))
    count = rng.randint(1, 4)
    extra = {}
    if rng.random() < 0.1:
        extra["unschedulable"] = True
    if rng.random() < 0.15:
        extra["taints"] = [{"key": "lab", "effect": rng.choice(("NoSchedule", "PreferNoSchedule"))}]
    if rng.random() < 0.4:
        extra["labels"] = {"zone": rng.choice("ab")}
    cpu = rng.choice((16, 64) if flood else (4, 16, 64, 1_000_000))
    memory = rng.choice(("8Gi", "64Gi", "512Ti"))
    extra |= {"cpu": cpu, "memory": memory, "pods": 3 if rng.random() < 0.1 else 110}
    if rng.random() < 0.1:
        extra["extended"] = {"attachable-volumes-csi-d": 1}
    if kind == "cpu":
        nodes[name] = {}
        return b.node(name, **extra)
    if kind == "mig":
        nodes[name] = {SLICE: 2 * count}
        return b.node(name, WHOLE, mig={"1g.5gb": 2 * count}, **extra)
    if kind == "mps":
        nodes[name] = {SHARE: 4 * count}
        return b.node(name, OTHER, shares=4 * count, shares_per_card=4, **extra)
    card = WHOLE if kind == "whole" else OTHER
    nodes[name] = {card: count}
    return b.node(name, card, count, **extra)


def _queue(rng, name, flood, inference):
    inference = rng.random() < 0.5 if inference is None else inference
    kind = b.INFERENCE if inference else b.TRAINING
    quota = None
    if rng.random() < 0.9:
        sizes = (4, 8, 16) if flood else (0, 1, 2, 4, 8, 16, 0.5)
        quota = {card: rng.choice(sizes) for card in CARDS if rng.random() < 0.9}
    extra = {}
    if rng.random() < (0.1 if flood else 0.3):
        extra["cpu"] = rng.choice((1, 8, 32))
    if rng.random() < (0.1 if flood else 0.2):
        extra["memory"] = rng.choice(("1Gi", "32Gi"))
    if rng.random() < 0.4:
        extra["service_type"] = "inference" if inference else "training"
    if rng.random() < 0.07:
        extra["state"] = rng.choice(("Closed", "Closing"))
    extra |= _entitlements(rng)
    if extra.get("parent") == name:
        del extra["parent"]
    return b.queue(name, quota, **kind, created=rng.randint(0, 3), **extra)


def _entitlements(rng):
    """What only plugins of upstream's look at: weights, lines, guarantees, a tree of queues."""
    extra = {"weight": rng.choice((1, 1, 2, 5))} if rng.random() < 0.5 else {}
    for part in ("deserved", "guarantee", "capability"):
        if rng.random() < 0.25:
            sizes = (0, 1, 2) if part == "guarantee" else (1, 2, 4, 8)
            extra[part] = {"nvidia.com/gpu": rng.choice(sizes)}
            if rng.random() < 0.3:
                extra[part]["cpu"] = rng.choice((1, 4, 16))
    if rng.random() < 0.2:
        extra["parent"] = rng.choice(("q0", "root", "nowhere"))
    return extra


def _gang(rng, name, queues, nodes, room, flood):
    service = rng.choice(("training", "training", "inference", "inference", "unknown"))
    running = {"training": 0.95, "inference": 0.1, "unknown": 0.5}[service] if flood else 0.6
    if flood and rng.random() < 0.9:
        queues = [q for i, q in enumerate(queues) if (i % 2 == 0) == (service == "inference")] or queues
    wanted = rng.randint(1, 4)
    least = rng.choice((1, wanted, wanted, rng.randint(1, wanted + (rng.random() < 0.3))))
    created = rng.randint(0, 2000)
    there = sorted({card for cards in nodes.values() for card in cards})
    # In a flood the services ask for more at once than one small gang holds.
    sizes = {"inference": (1, 2, 4, 4), "training": (1, 1, 2)}.get(service, (1, 2)) if flood else (1, 1, 2, 4)
    request = _request(rng, flood, there, sizes)
    owner = b.owned_by(OWNER_KINDS[service], name)
    said = service if rng.random() < 0.3 and service != "unknown" else ""
    priority = rng.choice(CLASSES)
    between = _relations(rng) if rng.random() < 0.15 else {}
    app = rng.choice("xyz")
    topology = _topology(rng) if rng.random() < 0.15 else {}
    pods = []
    runs = 0
    for i in range(wanted):
        node = _laid_out(rng, request, nodes, room) if rng.random() < running else ""
        runs += bool(node)
        pods.append(
            _pod(
                rng,
                f"{name}-w-{i}",
                name,
                node,
                request,
                priority,
                owner,
                created,
                app,
                between,
                rng.choice("ab") if topology else "",
            )
        )
    phase = "Running" if runs >= least else rng.choice(("Pending", "Pending", "Inqueue"))
    preemptable = "false" if rng.random() < 0.08 else None
    group = b.pod_group(
        name,
        rng.choice(queues),
        least,
        service_type=said,
        priority=priority,
        created=created,
        owner=owner,
        phase=phase,
        preemptable=preemptable,
        annotations=topology | (_deadline(rng) if rng.random() < 0.1 else {}),
    )
    if service != "training":
        return [group, *pods]
    return [b.job(name, "x", wanted, evicted=rng.choice(POLICIES), min_available=least), group, *pods]


def _request(rng, flood, there, sizes):
    """What the members of a gang ask for; mostly cards that the nodes have."""
    request = {"cpu": rng.choice(("100m", "1", "3")), "memory": rng.choice(("100Mi", "2Gi"))}
    kinds = ("card", "choice", "milli", "cpu", "nothing", "unnamed", "absent")
    kind = rng.choice(("card", "card", "card", "choice", "milli") if flood and rng.random() < 0.85 else kinds)
    whole = [card for card in there if card in (WHOLE, OTHER)]
    if kind == "card" and there:
        card = rng.choice(there)
        request |= {"card": card, "count": rng.choice(sizes if card in whole else (1, 2, 3))}
    elif kind == "choice":
        request |= {"card": rng.choice((f"{WHOLE}|{OTHER}", f"{OTHER}|{WHOLE}")), "count": rng.choice(sizes)}
    elif kind == "milli" and whole:
        request |= {"card": rng.choice([*whole, f"{OTHER}|{WHOLE}"]), "milli": rng.choice((300, 500, 600))}
    elif kind == "nothing":
        request = {"cpu": 0, "memory": 0}
    elif kind == "unnamed":
        request["resources"] = {"nvidia.com/gpu": 1}
    elif kind == "absent":
        request |= {"card": rng.choice(CARDS), "count": 1}
    return request


def _laid_out(rng, request, nodes, room):
    """A node where the pod can run, or none."""
    cards = request.get("card", "").split("|") if request.get("card") else []
    if request.get("resources"):
        cards = [WHOLE, OTHER]
    for node in rng.sample(sorted(nodes), len(nodes)):
        if not cards:
            return node
        # The first card of the choice that the node has is the one that it runs on.
        card = next((card for card in cards if card in nodes[node]), None)
        if card and room.take(node, card, request.get("count", 1), request.get("milli", 0)):
            return node
    return ""


def _deadline(rng):
    """How long a gang may wait, for sla."""
    return {"volcano.sh/sla-waiting-time": rng.choice(("1h", "2h", "150m"))}


def _topology(rng):
    """Which roles of a gang want to be on one node."""
    kinds = {"affinity": ("a,b", "a", "a;b", "b,b"), "anti-affinity": ("a", "b", "a,b"), "task-order": ("b,a", "a")}
    chosen = rng.sample(sorted(kinds), rng.choice((1, 2, 3)))
    return {f"volcano.sh/task-topology-{kind}": rng.choice(kinds[kind]) for kind in chosen}


def _relations(rng):
    """Parts of a pod's spec that speak of other pods."""
    selector = {"matchLabels": {"app": rng.choice("xyz")}}
    term = {"topologyKey": rng.choice(("kubernetes.io/hostname", "zone")), "labelSelector": selector}
    kind = rng.choice(("affinity", "anti", "anti", "wish", "spread", "spread"))
    if kind == "affinity":
        return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    if kind == "anti":
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    if kind == "wish":
        wish = {"weight": rng.choice((1, 10)), "podAffinityTerm": term}
        where = rng.choice(("podAffinity", "podAntiAffinity"))
        return {"affinity": {where: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}}
    rule = rng.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    constraint = {**term, "maxSkew": rng.choice((1, 1, 2)), "whenUnsatisfiable": rule}
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = "Honor"
    if rule == "DoNotSchedule" and rng.random() < 0.3:
        constraint["minDomains"] = 2
    return {"topologySpreadConstraints": [constraint]}


def _pod(rng, name, group, node, request, priority, owner, created, app, between, role):
    extra = {"labels": {"app": app}, "role": role}
    spec = dict(between)
    if rng.random() < 0.1:
        spec["nodeSelector"] = {"zone": rng.choice("ab")}
    if rng.random() < 0.1:
        spec["tolerations"] = [{"key": "lab", "operator": "Exists"}]
    if rng.random() < 0.05:
        spec["preemptionPolicy"] = "Never"
    if rng.random() < 0.05:
        extra["preemptable"] = "false"
    if node and rng.random() < 0.07:
        extra["deleted"] = 9_990
    if not node and rng.random() < 0.04:
        spec["schedulingGates"] = [{"name": "later"}]
    if not node and rng.random() < 0.04:
        extra["phase"] = rng.choice(("Succeeded", "Failed"))
    if node and rng.random() < 0.1:
        extra["phase"] = "Pending"
    started = created + rng.randint(1, 5000)
    return b.pod(
        name,
        group,
        node=node,
        priority=priority,
        owner=owner,
        created=created,
        started=started,
        spec=spec,
        **request,
        **extra,
    )


def crowd(rng, objects):
    """More gangs of the kinds that are there already, so that queues take turns and room runs out; more that leave."""
    for thing in objects:
        if thing["kind"] == "Pod" and thing["spec"].get("nodeName") and rng.random() < 0.1:
            thing["metadata"].setdefault("deletionTimestamp", b.at(9_990))
    count = rng.randint(0, 12)
    nodes = sorted(o["metadata"]["name"] for o in objects if o["kind"] == "Node")
    queues = sorted(o["metadata"]["name"] for o in objects if o["kind"] == "Queue")
    cards = ("A100", "H200", "A100|H200", "H200|A100")
    for number in range(count if nodes else 0):
        name, members = f"x{number}", rng.randint(1, 5)
        least = rng.randint(1, members)
        request = {"cpu": rng.choice((0, "1", "3")), "memory": rng.choice((0, "1Gi"))}
        kind = rng.choice(("card", "share", "none"))
        if kind == "card":
            request |= {"card": rng.choice(cards), "count": rng.choice((1, 1, 2))}
        elif kind == "share":
            request |= {"card": rng.choice(cards), "milli": rng.choice((300, 500, 600))}
        elif not request["cpu"] and not request["memory"]:
            request["cpu"] = "2"
        born = rng.randint(0, 3)
        objects.append(b.pod_group(name, rng.choice(queues), least, created=born))
        for member in range(members):
            mixed = {"cpu": "500m"} if rng.random() < 0.1 else {}
            pod_name = f"{name}-w-{member}" if rng.random() < 0.8 else f"{name}-{rng.choice('zyx')}{member}"
            objects.append(b.pod(pod_name, name, created=born + rng.randint(0, 1), **{**request, **mixed}))
    return objects
