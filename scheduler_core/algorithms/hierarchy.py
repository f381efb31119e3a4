"""Queues as a tree by ``spec.parent``: paths, children, and what of it is broken. Source: volcano-semantics 4.9
(hierarchy) and 6.1."""

from collections.abc import Sequence

ROOT = "root"


class QueueTree:
    """Positions of queues under one root that is not among them; without ``hierarchical`` all hang on the root.

    A queue whose parent is unknown, or that is part of a circle, hangs on the root too, with a problem.

    Attributes:
        root: position of the queue called ``root``, -1 where there is none; it is the child of no queue.
        parent: by queue, -1 = the root. children: by queue. top: the children of the root.
        problems: sentence by queue, for those whose place is broken and those below them."""

    def __init__(self, names: Sequence[str], parents: Sequence[str], *, hierarchical: bool) -> None:
        index = {name: q for q, name in enumerate(names)}
        self.root = index.get(ROOT, -1) if hierarchical else -1
        self.parent = [-1] * len(names)
        self.children: list[list[int]] = [[] for _ in names]
        self.top: list[int] = []
        self.problems: dict[int, str] = {}
        if hierarchical:
            for q, above in enumerate(parents):
                if not above or above == ROOT or q == self.root:
                    continue
                at = index.get(above, -1)
                if at < 0:
                    self.problems[q] = f"its parent queue {above} does not exist"
                elif self._reaches(at, q):
                    self.problems[q] = f"queue {names[q]} is above its own parent {above}"
                else:
                    self.parent[q] = at
        for q, place in enumerate(self.parent):
            if place >= 0:
                self.children[place].append(q)
            elif q != self.root:
                self.top.append(q)
        for q, why in list(self.problems.items()):
            for under in self.below(q)[1:]:
                self.problems[under] = f"queue {names[q]} above it is out of place: {why}"

    def _reaches(self, start: int, goal: int) -> bool:
        """Whether the parents that are known so far lead from ``start`` to ``goal``."""
        at = start
        while at >= 0:
            if at == goal:
                return True
            at = self.parent[at]
        return False

    def path(self, queue: int) -> list[int]:
        """From just below the root down to the queue; the queue alone for the root itself."""
        found = [queue]
        while self.parent[found[-1]] >= 0:
            found.append(self.parent[found[-1]])
        return found[::-1]

    def leaf(self, queue: int) -> bool:
        """Whether gangs may use it: no queue is below it, and it is not the root."""
        return not self.children[queue] and queue != self.root

    def below(self, queue: int) -> list[int]:
        """The queue and all below it, parents before children."""
        found = [queue]
        for at in found:
            found += self.children[at]
        return found

    def top_down(self) -> list[int]:
        """All queues but the root, parents before children."""
        return [q for top in self.top for q in self.below(top)]

    def common(self, left: int, right: int) -> int:
        """How many levels two queues share below the root."""
        depth = 0
        for a, b in zip(self.path(left), self.path(right), strict=False):
            if a != b:
                break
            depth += 1
        return depth
