"""What plugins answer at the points of the per-pod cycle.

=============== ================================================ ================================================
point           called as                                        answer
=============== ================================================ ================================================
queue_sort      ``queue_sort(task)``                             sort key; one plugin only
pre_filter      ``pre_filter(task)``                             None, or why (text or Deny) the cycle ends here
filter          ``predicate(cls)``, ``task_predicate(task)``     masks; the first that refuses a node counts
post_filter     ``post_filter(task, dry_run)``                   :class:`Nomination` or None; the first one counts
pre_score       ``pre_score(task, nodes)``                       None, or why the cycle ends here
score           ``node_order(cls, where)``, ``task_node_order``  added up
normalize_score ``normalize_score(task, scores)``                the scores anew, one plugin after the other
reserve         ``reserve(task, node)``                          None, or why not; then everything is unreserved
unreserve       ``unreserve(task, node)``                        nothing; in reverse order
permit          ``permit(task, node)``                           :data:`APPROVE`, :class:`Deny` or :class:`Wait`
pre_bind        ``pre_bind(task, node)``                         None, or why not
bind            ``bind(task, node)``                             True = bound, False = not mine, or why not
post_bind       ``post_bind(task, node)``                        nothing
=============== ================================================ ================================================

Source: document 001, 2.2.3; contracts 4.
"""

from __future__ import annotations

import msgspec


class Approve(msgspec.Struct, frozen=True, gc=False):
    """The pod may be bound."""


class Deny(msgspec.Struct, frozen=True, gc=False):
    """The pod goes back to the queue.

    Attributes:
        reason: why. timed_out: its group waited too long, so all that wait with it are let go.
    """

    reason: str
    timed_out: bool = False


class Wait(msgspec.Struct, frozen=True, gc=False):
    """The pod keeps its place and is not bound yet; ``until`` in seconds since the epoch."""

    until: float
    reason: str = ""


APPROVE = Approve()
Permit = Approve | Deny | Wait


class Nomination(msgspec.Struct, frozen=True, gc=False):
    """Room that preemption makes: the node, and the tasks that have to leave it."""

    node: int
    victims: tuple[int, ...]
