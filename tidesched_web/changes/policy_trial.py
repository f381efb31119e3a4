"""A policy is tried on recorded sessions that decided something: each is decided again as it ran, and with the policy.
They know nothing of each other, so a gang that waits in three of them counts three times."""

import time
from collections.abc import Callable

from tidesched_web.changes.impact_day import DAY, NO_SESSIONS, Day, Row, chosen, often
from tidesched_web.engine.edits import Edit
from tidesched_web.engine.model import BadInput, Result, Snapshot
from tidesched_web.engine.what_if import try_out
from tidesched_web.jobs.running import Running
from tidesched_web.quota.selectors import tenants_of_queues
from tidesched_web.scheduling.input_selectors import PLACED, TOOK, StoredInput, inputs_since, newest_input

MOST_SESSIONS = 20
LIMIT_SECONDS = 60.0
MOST_GANGS = 10
# What a session does with a gang: binds pods, promises what it takes back for it, leaves it waiting, takes it back
# for another queue, or evicts it else.
FATES = ("started", "promised", "waiting", "reclaimed", "evicted")


class PolicyTrial(Day):
    def __init__(self, running: Running, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(running, Edit(policy=text))
        self._clock, self._tenants = clock, tenants_of_queues(self.cluster_id)

    def _begin(self) -> Row:
        newest = newest_input(self.cluster_id)
        took, placed = (inputs_since(self.cluster_id, newest.now - DAY, q) if newest else [] for q in (TOOK, PLACED))
        # Sessions that took cards back are rare: up to half of the trial is theirs, and the newest is tried first.
        rare = chosen(took, max(MOST_SESSIONS // 2, MOST_SESSIONS - len(placed)))
        taken = sorted([*rare, *chosen(placed, MOST_SESSIONS - len(rare))], key=lambda one: -one.id)
        return {
            "sessions": [one.session_id for one in taken], "recorded": len(took) + len(placed), "spent": 0.0,
            "from": taken[-1].now.isoformat() if taken else "", "next": 0, "missing": 0, "changed": 0,
            "tenants": {}, "rows": {"differ": {}}, "more": {"differ": 0},
        }  # fmt: skip

    def _late(self) -> bool:
        """Whether one more, as long as those so far, would end after the limit."""
        done = self.state["next"]
        return bool(self.state["spent"] * (done + 1) > LIMIT_SECONDS * done)

    def _try(self, one: StoredInput, place: int) -> bool:
        since = self._clock()
        try:
            trial = try_out(self.loaded.read(one), self.edit)
        except BadInput:
            return False
        queues = {group.key: group.queue for group in trial.snapshot.pod_groups}
        old, new = _fates(trial.snapshot, trial.before), _fates(trial.snapshot, trial.after)
        differ = []
        for gang in sorted(old.keys() | new.keys()):
            queue, was, becomes = queues.get(gang, ""), old.get(gang, ""), new.get(gang, "")
            tenant, name = self._tenants.get(queue, (None, None))
            nothing = {"tenant": tenant, "name": name, **{fate: [0, 0] for fate in FATES}}
            sums = self.state["tenants"].setdefault(str(tenant), nothing)
            for fate in filter(None, {was, becomes}):
                sums[fate] = [sums[fate][0] + (fate == was), sums[fate][1] + (fate == becomes)]
            if was != becomes:
                differ.append({"gang": gang, "queue": queue, "was": was, "becomes": becomes})
        self.state["changed"] += bool(differ)
        self._note("differ", differ, one)
        self.state["spent"] += self._clock() - since
        return True

    def _key(self, row: Row) -> str:
        return f"{row['gang']} {row['was']} {row['becomes']}"

    def _result(self) -> Row:
        tried = self.state["next"] - self.state["missing"]
        differ = sorted(self.state["rows"]["differ"].values(), key=often)
        figures = {name: self.state[name] for name in ("recorded", "missing", "changed")}
        return NO_SESSIONS if not tried else {
            "tenants": sorted(self.state["tenants"].values(), key=lambda row: (row["name"] is None, row["name"])),
            "differ": differ[:MOST_GANGS],
            "counts": {"differ": len(differ)},
            "sessions": {**figures, "chosen": len(self.state["sessions"]), "tried": tried},
        }  # fmt: skip


def _fates(snapshot: Snapshot, result: Result) -> dict[str, str]:
    bound = {bind.pod for bind in result.binds}
    return {
        **{one.podgroup: "promised" if one.code == "WaitingForReclaim" else "waiting" for one in result.reasons},
        **{pod.group_key or pod.key: "started" for pod in snapshot.pods if pod.key in bound},
        **{one.gang: "reclaimed" if "reclaim" in one.action else "evicted" for one in result.evictions},
    }
