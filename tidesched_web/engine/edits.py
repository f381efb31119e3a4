"""Only the fields in which two manifests of an object differ are taken over: the rest stays as the session saw it."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from scheduler_core.serde.kubernetes.queue import read_priority_class, read_queue
from tidesched_web.engine.model import PodGroup, PriorityClass, Queue, Snapshot

Fields: TypeAlias = dict[str, Any]
Thing: TypeAlias = Queue | PriorityClass

# What an object is, not what it says.
_OWN = ("name", "uid", "created", "made")


class Edit(msgspec.Struct, frozen=True):
    """``before`` has those that the intent has now. ``policy`` is another policy text, empty = the one in force."""

    queues: dict[str, Queue | None] = {}
    queues_before: dict[str, Queue] = {}
    classes: dict[str, PriorityClass | None] = {}
    classes_before: dict[str, PriorityClass] = {}
    policy: str = ""

    @property
    def empty(self) -> bool:
        return not (self.queues or self.classes or self.policy)


def read_edit(objects: Iterable[Mapping[str, Any]], policy: str = "") -> Edit:
    """``objects`` are ``{kind, name, before, after}`` with manifests or None; other kinds decide nothing."""
    queues, queues_before = dict[str, Queue | None](), dict[str, Queue]()
    classes, classes_before = dict[str, PriorityClass | None](), dict[str, PriorityClass]()
    for item in objects:
        name, kind, before, after = item["name"], item["kind"], item.get("before"), item.get("after")
        if before == after:
            continue
        if kind == "Queue":
            queues[name] = read_queue(after) if after else None
            if before:
                queues_before[name] = read_queue(before)
        elif kind == "PriorityClass":
            classes[name] = read_priority_class(after) if after else None
            if before:
                classes_before[name] = read_priority_class(before)
    return Edit(queues, queues_before, classes, classes_before, policy)


def edited(snapshot: Snapshot, edit: Edit) -> Snapshot:
    """Pods keep the priority that they were made with, as in Kubernetes; gangs that name a class follow its value."""
    queues = _laid_over(snapshot.queues, edit.queues, edit.queues_before)
    classes = _laid_over(snapshot.priority_classes, edit.classes, edit.classes_before)
    if queues == snapshot.queues and classes == snapshot.priority_classes:
        return snapshot
    groups = snapshot.pod_groups
    if classes != snapshot.priority_classes:
        groups = _with_values(groups, snapshot.priority_classes, classes)
    return msgspec.structs.replace(snapshot, queues=queues, priority_classes=classes, pod_groups=groups)


def _laid_over(
    present: tuple[Any, ...], after: Mapping[str, Thing | None], before: Mapping[str, Thing]
) -> tuple[Any, ...]:
    found: dict[str, Thing] = {item.name: item for item in present}
    for name, item in after.items():
        if item is None:
            found.pop(name, None)
        elif name in found:
            found[name] = msgspec.structs.replace(found[name], **_differences(before.get(name), item))
        else:
            found[name] = item
    return tuple(found[name] for name in sorted(found))


def _differences(before: Thing | None, after: Thing) -> Fields:
    fields = [name for name in after.__struct_fields__ if name not in _OWN]
    return {
        name: getattr(after, name) for name in fields if before is None or getattr(before, name) != getattr(after, name)
    }


def _with_values(
    groups: Iterable[PodGroup], before: Iterable[PriorityClass], after: Iterable[PriorityClass]
) -> tuple[PodGroup, ...]:
    old = {item.name: item.value for item in before}
    new = {item.name: item.value for item in after}
    moved = {name for name in old if new.get(name, 0) != old[name]}
    return tuple(
        msgspec.structs.replace(group, priority=new.get(group.priority_class, 0))
        if group.priority_class in moved and group.priority == old[group.priority_class]
        else group
        for group in groups
    )
