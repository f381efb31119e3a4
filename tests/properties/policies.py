"""Random policies: the founding one, with more plugins and actions, other switches and other arguments.

A plugin or an action takes part as soon as it has a naive version and a line here.
"""

from __future__ import annotations

import json

# name -> random arguments
PLUGINS = {
    "binpack": lambda rng: {
        "binpack.weight": rng.choice((1, 10)),
        "binpack.memory": rng.choice((0, 1)),
        "binpack.resources": rng.choice(("", "nvidia.com/gpu", "A100, nvidia.com/gpu")),
        "binpack.resources.nvidia.com/gpu": rng.choice((1, 5)),
    },
    "card-model": lambda rng: {"rareCards": rng.choice(([], [], ["H200"])), "weight": rng.choice((1, 3))},
    "cdp": lambda rng: {},
    "machine-group": lambda rng: {},
    "requested-to-capacity-ratio": lambda rng: {
        "functionshape": [
            {"utilization": 0, "score": rng.choice((0, 10))},
            {"utilization": 50, "score": rng.choice((3, 8))},
            {"utilization": 100, "score": rng.choice((0, 10))},
        ],
        "resources": rng.choice(({"cpu": 1, "memory": 1}, {"cpu": 1, "nvidia.com/gpu": 3})),
        "weight": rng.choice((1, 7)),
    },
    "capacity": lambda rng: {"ancestorReclaimLevel": rng.choice((0, 0, 1, 3))},
    "deviceshare": lambda rng: {
        f"deviceshare.{rng.choice(('GPUSharingEnable', 'GPUNumberEnable', 'VGPUEnable', 'VGPUEnable'))}": True,
        "deviceshare.SchedulePolicy": rng.choice(("", "binpack", "spread")),
        "deviceshare.ScheduleWeight": rng.choice((0, 3)),
    },
    "drf": lambda rng: {},
    "extender": lambda rng: {
        "extender.urlPrefix": "http://extender.test",
        **{f"extender.{verb}Verb": verb for verb in VERBS if rng.random() < 0.4},
    },
    "fragmentation": lambda rng: {"weight": rng.choice((1, 3)), "popularity": rng.choice((50, 95, 100))},
    "nodegroup": lambda rng: {"strict": rng.random() < 0.2, "enablePreferredOrder": rng.random() < 0.5},
    "numa-aware": lambda rng: {"weight": rng.choice((1, 5))},
    "overcommit": lambda rng: {"overcommit-factor": rng.choice((1.0, 1.2, 1.7))},
    "pdb": lambda rng: {},
    "proportion": lambda rng: {},
    "rescheduling": lambda rng: {
        "thresholds": {"cpu": rng.choice((10, 40)), "cards": rng.choice((10, 60))},
        "targetThresholds": {"cpu": rng.choice((40, 50)), "cards": rng.choice((60, 80))},
    },
    "reservation": lambda rng: {"waitingSeconds": rng.choice((0.0, 0.0, 9000.0))},
    "resourcequota": lambda rng: {},
    "tdm": lambda rng: {
        "tdm.revocable-zone.day": rng.choice(("02:00-20:00", "09:00-17:00")),
        "tdm.revocable-zone.night": rng.choice(("20:00-06:00", "22:00-02:00")),
    },
    "task-topology": lambda rng: {"task-topology.weight": rng.choice((1, 1, 7))},
    "usage": lambda rng: {"usage.weight": rng.choice((0, 1, 5)), "thresholds": {"cpu": rng.choice((50, 80))}},
    "sla": lambda rng: {"sla-waiting-time": rng.choice(("", "2h", "9000s"))},
}
# name -> random switches
SWITCHES = {
    "capacity": lambda rng: {"enableHierarchy": rng.random() < 0.6},
    "drf": lambda rng: {"enableHierarchy": rng.random() < 0.5},
}
# Actions beside enqueue, allocate, backfill, reclaim; elect and reserve come together.
ACTIONS = ("gangpreempt", "gangreclaim", "preempt", "shuffle")
VERBS = (
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobReady",
)


def random_policy(rng, options):
    """Text of a policy file.

    Args:
        options: arguments of capacity-card.
    """
    first = [_plugin("priority"), _plugin("gang", enableReclaimable=False), _plugin("conformance")]
    second = [_plugin("predicates", _predicates(rng)), _plugin("nodeorder", _weights(rng))]
    second.insert(rng.randrange(3), _plugin("capacity-card", options))
    if rng.random() < 0.3:
        rng.shuffle(first)
    if rng.random() < 0.12:
        # Pods one by one instead of gangs taking turns; a policy has one that sorts them.
        sorter = rng.choice(("coscheduling", "priority-sort"))
        first.insert(0, _plugin(sorter, {"waitSeconds": 30.0} if sorter == "coscheduling" else None))
        if rng.random() < 0.7:
            second.append(_plugin("default-preemption"))
    names = rng.sample(sorted(PLUGINS), rng.choice((0, 0, 1, 1, 2, 3, 5)))
    for name in names:
        switches = SWITCHES.get(name, _none)(rng)
        if name == "drf" and "proportion" in names:
            switches = {}
        tier = rng.choice((first, second, second))
        tier.insert(rng.randrange(len(tier) + 1), _plugin(name, PLUGINS[name](rng), **switches))
    actions = ["enqueue", "allocate", "backfill", "reclaim"]
    if "reservation" in names or rng.random() < 0.05:
        actions.insert(rng.choice((1, 2)), "elect")
        actions.insert(rng.randrange(actions.index("allocate") + 1, len(actions) + 1), "reserve")
    if rng.random() < 0.2:
        actions.remove("enqueue")
    for name in ACTIONS:
        if rng.random() < (0.7 if name == "shuffle" and {"tdm", "rescheduling"} & set(names) else 0.2):
            actions.insert(rng.randrange(1, len(actions) + 1), name)
    if rng.random() < 0.1:
        # Nobody, or only what is promised, keeps a gang from starting with a part of its members.
        gang = next(plugin for plugin in first if plugin["name"] == "gang")
        gang[rng.choice(("enableJobReady", "enableJobPipelined"))] = False
        if rng.random() < 0.4:
            first.remove(gang)
    if rng.random() < 0.1:
        actions.remove("backfill")
    return json.dumps({"actions": ", ".join(actions), "tiers": [{"plugins": first}, {"plugins": second}]})


def _none(rng):
    return {}


def _plugin(name, arguments=None, **switches):
    return {"name": name, **switches, **({"arguments": arguments} if arguments else {})}


def _predicates(rng):
    kinds = ("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "PodTopologySpread")
    kinds += ("VolumeBinding", "VolumeZone", "NodeVolumeLimits")
    return {f"predicate.{kind}Enable": False for kind in kinds if rng.random() < 0.1}


def _weights(rng):
    names = ("leastrequested", "mostrequested", "nodeaffinity", "balancedresource", "tainttoleration")
    names += ("podaffinity", "podtopologyspread")
    return {f"{name}.weight": rng.choice((0, 1, 2, 5)) for name in names if rng.random() < 0.4}
