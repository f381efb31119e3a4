"""What the volumes of a pod leave of the nodes, one node at a time."""

from __future__ import annotations

from tests.reference.company import COMING, PRESENT
from tests.reference.nodes import holds, matches

ZONES = tuple(
    f"{stem}/{kind}"
    for stem in ("failure-domain.beta.kubernetes.io", "topology.kubernetes.io")
    for kind in ("region", "zone")
)


def claims_of(world, task):
    """The claims of a pod that the snapshot holds."""
    keys = [f"{task['pod'].namespace}/{name}" for name in task["pod"].claims]
    return [world["claims"][key] for key in keys if key in world["claims"]]


def class_of(world, claim):
    """The storage class of a claim: its own, or the youngest default."""
    if claim.storage_class is not None:
        return world["storage_classes"].get(claim.storage_class)
    defaults = sorted((c for c in world["storage_classes"].values() if c.default), key=lambda c: (-c.created, c.name))
    return defaults[0] if defaults else None


def waiting(world, task):
    """Claims that get a volume with the pod's node, smallest first."""
    found = [claim for claim in claims_of(world, task) if not claim.volume]
    return sorted(found, key=lambda claim: (claim.size, claim.name))


def usable(world, task):
    """Nothing is wrong with the claims, whatever the node."""
    known = {claim.name for claim in claims_of(world, task)}
    if any(name not in known for name in task["pod"].claims):
        return False
    for claim in claims_of(world, task):
        if claim.leaving or claim.lost:
            return False
        if claim.volume:
            volume = world["volumes"].get(claim.volume)
            if (volume is None and world["volumes"]) or (volume and volume.claim not in ("", claim.key)):
                return False
        elif class_of(world, claim) is None or not class_of(world, claim).waits:
            return False
    return True


def reachable(world, task, name):
    """The bound volumes can be attached to the node."""
    node = world["nodes"][name]
    return all(
        volume.nodes is None or any(matches(term, node) for term in volume.nodes) for volume in bound(world, task)
    )


def bound(world, task):
    """Volumes that the claims have."""
    names = [claim.volume for claim in claims_of(world, task) if claim.volume]
    return [world["volumes"][name] for name in names if name in world["volumes"]]


def zone_fits(world, task, name):
    """The zones of the bound volumes."""
    labels = world["nodes"][name].labels
    if not any(key in labels for key in ZONES):
        return True
    return all(
        labels.get(key) in volume.labels[key].split("__")
        for volume in bound(world, task)
        for key in ZONES
        if key in volume.labels
    )


def pick(world, claims, name, taken):
    """Volumes that waiting claims take on a node; None = one of them gets none."""
    node = world["nodes"][name]
    chosen = []
    for claim in claims:
        kind = class_of(world, claim)
        free = [
            volume
            for volume in sorted(world["volumes"].values(), key=lambda v: (v.capacity, v.name))
            if volume.available
            and volume.name not in taken
            and volume.name not in chosen
            and _goes_with(claim, volume, kind)
            and (volume.nodes is None or any(matches(term, node) for term in volume.nodes))
        ]
        if free:
            chosen.append(free[0].name)
            continue
        made = kind.provisioner not in ("", "kubernetes.io/no-provisioner") and not claim.selector
        if not made or not (kind.topologies is None or any(matches(term, node) for term in kind.topologies)):
            return None
    return chosen


def _goes_with(claim, volume, kind):
    if volume.claim:
        return volume.claim == claim.key
    return (
        volume.storage_class == kind.name
        and volume.mode == claim.mode
        and volume.capacity >= claim.size
        and all(mode in volume.access_modes for mode in claim.access_modes)
        and all(holds(line, volume.labels.get(line.key)) for line in claim.selector)
    )


def users(world, task, states):
    """Other pods in these states on nodes, by name."""
    found = [t for t in world["tasks"].values() if t is not task and t["node"] and t["status"] in states]
    return sorted((t for t in found if t["pod"].claims and usable(world, t)), key=lambda t: t["key"])


def bindable(world, task, name):
    """Every waiting claim gets a volume on the node that nobody placed since the snapshot has taken."""
    own = {claim.key for claim in waiting(world, task)}
    taken = []
    for other in users(world, task, PRESENT):
        claims = [claim for claim in waiting(world, other) if claim.key not in own]
        taken += pick(world, claims, other["node"], taken) or []
    if any(claim.selected_node not in ("", name) for claim in waiting(world, task)):
        return False
    return pick(world, waiting(world, task), name, taken) is not None


def alone(world, task, *, later):
    """Nobody else uses the claims that are for one pod alone."""

    def single(t):
        return {claim.key for claim in claims_of(world, t) if "ReadWriteOncePod" in claim.access_modes}

    return not any(single(task) & single(t) for t in users(world, task, COMING if later else PRESENT))


def attached(world, task):
    """(driver, name) of the pod's volumes that are attached."""
    found = {(v.driver, v.handle) for v in bound(world, task) if v.driver}
    for claim in waiting(world, task):
        kind = class_of(world, claim)
        if kind.provisioner not in ("", "kubernetes.io/no-provisioner"):
            found.add((f"csi-{kind.provisioner}", f"claim {claim.key}"))
    return found


def attachable(world, task, name, *, later):
    """No driver's limit is passed on the node."""
    here = [t for t in users(world, task, COMING if later else PRESENT) if t["node"] == name]
    held = set().union(*(attached(world, t) for t in here))
    for driver, limit in world["nodes"][name].volume_limits.items():
        new = {one for one in attached(world, task) - held if one[0] == driver}
        if new and len({one for one in held if one[0] == driver}) + len(new) > limit:
            return False
    return True
