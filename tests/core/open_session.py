"""A session that is only opened, and what it thinks of one pod: which nodes will do, and their scores."""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler_core import PluginOption
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory
from scheduler_core.plugins import PLUGINS
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import policy


def opened(given, rules=None, *, tiers=None, now=1000.0, memory=None, workspace=None):
    """The session of a snapshot, before its first action; ``tiers`` of plugins instead of those of the policy."""
    rules = rules or policy()
    tiers = tiers or [
        [(PLUGINS[option.name](option.arguments), option.switches) for option in tier] for tier in rules.tiers
    ]
    return Session(given, rules, tiers, now=now, seed=0, memory=memory or Memory(), workspace=workspace or Workspace())


def task_of(session, name):
    """The slot of a pod ``ns/name``."""
    return session.tasks.keys.index(name if "/" in name else f"ns/{name}")


def view_of(session, name):
    """What is known of the pod's class."""
    return session.candidates.view(session.cluster.class_of(task_of(session, name)))


def names(session, mask):
    """The nodes of a mask."""
    return [session.snapshot.nodes[i].name for i in np.flatnonzero(mask)]


def allowed(given, name, rules=None, *, at_once=False):
    """The nodes that the filters leave to a pod, once what leaves has left (or at once)."""
    session = opened(given, rules)
    view = view_of(session, name)
    return names(session, view.allowed_now if at_once else view.allowed)


def scores(given, name, rules=None):
    """Score by node."""
    session = opened(given, rules)
    cls = session.cluster.class_of(task_of(session, name))
    total = sum(
        (call(cls, slice(None)) for _, call in session.hooks.flat("node_order")), start=np.zeros(len(session.nodes))
    )
    return dict(zip((node.name for node in session.snapshot.nodes), total.tolist(), strict=True))


def with_plugin(name, rules=None, **arguments):
    """The policy of the small cluster and one more plugin."""
    rules = rules or policy()
    return msgspec.structs.replace(rules, tiers=(*rules.tiers, (PluginOption(name=name, arguments=arguments),)))


def own_scores(given, name, plugin, **arguments):
    """What one plugin alone scores for a pod, by node."""
    session = opened(given, with_plugin(plugin, **arguments))
    task = task_of(session, name)
    total = np.zeros(len(session.nodes))
    for point, subject in (("node_order", (session.cluster.class_of(task), slice(None))), ("task_node_order", (task,))):
        for owner, call in session.hooks.flat(point):
            answer = call(*subject) if owner == plugin else None
            total = total if answer is None else total + answer
    return dict(zip((node.name for node in session.snapshot.nodes), total.tolist(), strict=True))


def may_go(given, name, rules):
    """The nodes that the filters leave to one pod, what plugins say of single tasks included."""
    session = opened(given, rules)
    mask = view_of(session, name).allowed
    for _, call in session.hooks.flat("task_predicate"):
        answer = call(task_of(session, name))
        mask = mask if answer is None else mask & answer[1]
    return names(session, mask)
