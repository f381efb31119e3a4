"""nodegroup: groups of nodes by queue."""

from __future__ import annotations

from scheduler_core.model.queue import NodeGroups


class NodeGroup:
    """Allowed groups, and what is preferred among them."""

    def __init__(self, arguments):
        self.strict = arguments.get("strict", True)
        self.ordered = arguments.get("enablePreferredOrder", False)

    def task_filter(self, world, task, name):
        if task["queue"] is None:
            return True
        group = world["nodes"][name].labels.get("volcano.sh/nodegroup-name", "")
        named = world["queues"][task["queue"]].node_groups
        if not group:
            return named is None and not self.strict
        if named is None or group in named.denied:
            return False
        if not named.required and not named.preferred:
            return True
        return group in (*named.required, *named.preferred, *named.avoided)

    def task_score(self, world, task, name):
        group = world["nodes"][name].labels.get("volcano.sh/nodegroup-name", "")
        named = (world["queues"][task["queue"]].node_groups if task["queue"] else None) or NodeGroups()
        if not group:
            return 0
        if group in named.avoided:
            return -1
        if group in named.required:
            return 100
        if group not in named.preferred:
            return 0
        places = len(named.preferred)
        return 50 * (places - named.preferred.index(group)) / places if self.ordered else 50
