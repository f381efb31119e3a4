"""A snapshot shares with the one before whatever did not change, so that the engine's tables need not be made anew."""

from typing import Any

import msgspec

from scheduler_core.model.edition import Series
from tidesched_web.engine import inputs
from tidesched_web.engine.inputs import Difference
from tidesched_web.engine.model import Pod, PodGroup, Snapshot

_LONG = ("pods", "pod_groups")


class Follower:
    def __init__(self) -> None:
        self.base_id: int | None = None
        self._base: Snapshot | None = None
        self._of_base: dict[str, dict[str, Any]] = {}
        # What stands now otherwise than in the base, by list and key; None = gone.
        self._now: dict[str, dict[str, Any | None]] = {name: {} for name in _LONG}
        self._series: dict[str, Series[Any]] = {"pods": Series[Pod](), "pod_groups": Series[PodGroup]()}

    def needs_base(self, base_id: int) -> bool:
        return base_id != self.base_id

    def read_full(self, input_id: int, format: str, payload: bytes) -> Snapshot:  # noqa: A002
        full = inputs.decode(format, payload)
        lists: dict[str, Any] = {}
        for name in _LONG:
            known = {item.key: item for item in self._series[name].edition}
            changes: dict[str, Any | None] = dict.fromkeys(known.keys() - {item.key for item in getattr(full, name)})
            of_base = {}
            for item in getattr(full, name):
                old = known.get(item.key)
                # An equal value stays the same object, which need not be looked at again.
                of_base[item.key] = item if old is None or old != item else old
                if of_base[item.key] is not old:
                    changes[item.key] = item
            self._of_base[name], self._now[name] = of_base, {}
            lists[name] = self._series[name].change(changes)
        self.base_id, self._base = input_id, msgspec.structs.replace(full, **lists)
        return self._base

    def read_difference(self, payload: bytes) -> Snapshot:
        assert self._base is not None, "a difference needs its base"
        change = inputs.decode_difference(payload)
        lists = {name: self._change(name, change) for name in _LONG}
        # The short lists as for any reader; the long ones must not be sorted again.
        gone = {name: keys for name, keys in change.gone.items() if name not in _LONG}
        short = msgspec.structs.replace(change, pods=(), pod_groups=(), gone=gone)
        rest = inputs.apply(short, msgspec.structs.replace(self._base, pods=(), pod_groups=()))
        return msgspec.structs.replace(rest, **lists)

    def _change(self, name: str, change: Difference) -> Any:
        of_base, now = self._of_base[name], self._now[name]
        after: dict[str, Any | None] = {item.key: item for item in getattr(change, name)}
        after |= dict.fromkeys(change.gone.get(name, ()))
        changes: dict[str, Any | None] = {}
        for key, item in after.items():
            old = now[key] if key in now else of_base.get(key)
            if old is not None and old == item:
                after[key] = old
            elif old is not None or item is not None:
                changes[key] = item
        for key in now.keys() - after.keys():
            changes[key] = of_base.get(key)
        self._now[name] = after
        return self._series[name].change(changes)
