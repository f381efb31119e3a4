"""Plugin ``priority-sort``: the pods of a profile go one by one, the higher priority first.

Extension points: queue_sort.
Having a sorter makes action allocate run the per-pod cycle instead of gangs taking turns. Gangs are then kept together
only by plugins that permit, such as coscheduling, which sorts by itself: a profile has one sorter.
Source: document 001, 3.1.1; kube-scheduler's PrioritySort."""

from typing import ClassVar

from scheduler_core.framework.plugin import Plugin


class PrioritySort(Plugin):
    name: ClassVar[str] = "priority-sort"

    def queue_sort(self, task: int) -> tuple[int]:
        """Higher pod priority first; the cycle adds creation and name."""
        return (-int(self.session.tasks.priority[task]),)
