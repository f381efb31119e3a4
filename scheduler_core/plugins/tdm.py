"""Plugin ``tdm``: machines that are lent to revocable work at certain hours (time division multiplexing).

Extension points: predicate, node_order, preemptable, victim_tasks, job_order, job_starving.
Nodes with label ``volcano.sh/revocable-zone`` belong to a zone, and ``tdm.revocable-zone.<zone>`` says when it is open.
An open zone takes revocable pods only (annotation ``volcano.sh/revocable-zone: "*"``, or ``volcano.sh/preemptable:
"true"`` without the former), and they are scored 100 there; a closed zone takes no pod, and the action shuffle empties
it: every ``tdm.evict.period``, of each gang so many pods at most as ``volcano.sh/jdb-max-unavailable`` or
``jdb-min-available`` of its PodGroup allow (numbers or percentages; 1 without either).
A pod that is not preemptable may take preemptable ones outside the zones, within the same limits; gangs that are not
preemptable go first and starve as long as a member waits.
Source: volcano-semantics 4.12. On purpose different from upstream (``compatibility: volcano`` decides as it does): a
window over midnight stays open until its end; when a zone was last emptied is kept in the memory of the sessions, not
in a variable of the process, so that a restart does not evict anew. The hours are those of ``tdm.timezone``, not of the
machine that the scheduler runs on. A task without the annotation counts as preemptable when it preempts, as upstream
has it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np

from scheduler_core.algorithms.allowance import share_of
from scheduler_core.algorithms.durations import parse_duration
from scheduler_core.algorithms.tide_window import Window, parse_window
from scheduler_core.framework.combine import Opinion
from scheduler_core.framework.forms import Form, StaticKey, Term
from scheduler_core.framework.kernels.terms import STATIC
from scheduler_core.framework.node_scores import ScoredByTerms
from scheduler_core.framework.plugin import Argument
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import FAILED, RUNNING, SUCCEEDED, Bools, Floats
from scheduler_core.state.task_class import TaskClass

ZONE = "volcano.sh/revocable-zone"
PREEMPTABLE = "volcano.sh/preemptable"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
MIN_AVAILABLE = "volcano.sh/jdb-min-available"
_KEY = "tdm/"


class Tdm(ScoredByTerms):
    name: ClassVar[str] = "tdm"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            name="tdm.revocable-zone.<zone>", type="str", default={},
            doc="when the zone is open, `HH:MM-HH:MM`; an end before the start is on the next day",
        ),
        Argument(
            name="tdm.evict.period", type="str", default="1m",
            doc="how long a closed zone is left alone after pods were sent away",
        ),
        Argument(name="tdm.timezone", type="str", default="UTC", doc="time zone of the windows, `Asia/Shanghai`"),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        """Windows, the period and the time zone must be what they are called."""
        for window in values["tdm.revocable-zone.<zone>"].values():
            parse_window(window)
        parse_duration(values["tdm.evict.period"])
        _zone(values["tdm.timezone"])

    def open(self, session: Session) -> None:
        """Find out which zones are open now, and which nodes belong to them."""
        super().open(session)
        clock = _zone(self.values["tdm.timezone"])
        windows = {name: parse_window(text) for name, text in self.values["tdm.revocable-zone.<zone>"].items()}
        self._open = {name for name, window in windows.items() if self._is_open(window, clock)}
        self._closed = sorted(windows.keys() - self._open)
        self._zones = [node.labels.get(ZONE, "") for node in session.snapshot.nodes]
        self._private: Bools = np.array([bool(zone) for zone in self._zones], dtype=np.bool_)
        self._lent: Bools = np.array([zone in self._open for zone in self._zones], dtype=np.bool_)
        self._period = parse_duration(self.values["tdm.evict.period"])
        self._acted = {
            key: at
            for key, at in session.memory.acted.items()
            if key.startswith(_KEY) and at + self._period > session.now
        }

    def remember(self) -> dict[str, float]:
        """When each closed zone was last emptied."""
        return self._acted

    def _is_open(self, window: Window, clock: ZoneInfo) -> bool:
        return window.contains(self.session.now, clock, past_midnight=not self.session.compat)

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools]]:
        """Nodes outside the zones, and for revocable tasks those of open zones."""
        yield NodeRefusal.REVOCABLE_ZONE, ~self._private | self._lent if _revocable(cls) else ~self._private

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """100 for a revocable task on a node of an open zone; zones open and close between sessions."""
        if point == "node_order":
            lent: Floats = self._lent.astype(np.float64) * 100.0
            return [Term(STATIC, of_class=lambda cls: lent if _revocable(cls) else None)]
        if point == "job_order":
            kept = [group.preemptable is True for group in self.session.gangs.groups]
            return [StaticKey(np.array(kept, dtype=np.int64))]
        return None

    def job_order(self, gang: int) -> tuple[bool]:
        """Gangs that are not preemptable go first."""
        return (self._preemptable_gang(gang),)

    def job_starving(self, gang: int) -> bool:
        """A gang that is not preemptable, as long as a member waits."""
        return not self._preemptable_gang(gang) and self.session.gangs.pending(gang) > 0

    def _preemptable_gang(self, gang: int) -> bool:
        return self.session.group(gang).preemptable is True

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> Opinion:
        """Preemptable tasks that run outside the zones, for a preemptor that is neither preemptable nor revocable."""
        tasks = self.session.tasks
        cls = self.session.cluster.class_of(preemptor)
        if not tasks.protected[preemptor] or _revocable(cls):
            return Opinion(frozenset(), dict.fromkeys(candidates, Rule.TAKER_PREEMPTABLE.text()))
        refused: dict[int, str] = {}
        fit = []
        for task in candidates:
            node = int(tasks.node[task])
            if tasks.status[task] != RUNNING or tasks.protected[task]:
                refused[task] = Rule.NOT_PREEMPTABLE.text()
            elif node >= 0 and self._private[node]:
                refused[task] = Rule.REVOCABLE_ZONE.text()
            else:
                fit.append(task)
        allowed = self._within_budgets(fit)
        refused |= dict.fromkeys((task for task in fit if task not in allowed), Rule.GANG_BUDGET.text())
        return Opinion(frozenset(allowed), refused)

    def victim_tasks(self, candidates: Sequence[int]) -> dict[int, str]:
        """Preemptable tasks on nodes of closed zones, a few of each gang at a time."""
        session = self.session
        tasks = session.tasks
        due = [zone for zone in self._closed if _KEY + zone not in self._acted]
        found: dict[int, str] = {}
        for zone in due:
            there = [
                task
                for task in candidates
                if tasks.node[task] >= 0 and self._zones[tasks.node[task]] == zone and not tasks.protected[task]
            ]
            for task in self._within_budgets(there):
                found[task] = f"revocable zone {zone} is closed now"
            if there:
                self._acted[_KEY + zone] = session.now
        return found

    def _within_budgets(self, candidates: Sequence[int]) -> list[int]:
        """The first candidates of each gang, as many as its budget lets go."""
        left: dict[int, int] = {}
        chosen = []
        for task in candidates:
            gang = int(self.session.tasks.gang[task])
            if gang not in left:
                left[gang] = self._budget(gang)
            if left[gang] > 0:
                left[gang] -= 1
                chosen.append(task)
        return chosen

    def _budget(self, gang: int) -> int:
        """How many running members may go now; 1 where nothing (or nothing that means anything) is written."""
        gangs, notes = self.session.gangs, self.session.group(gang).annotations
        total, running = gangs.total(gang), gangs.count(gang, RUNNING)
        try:
            if notes.get(MAX_UNAVAILABLE):
                ended = gangs.count(gang, SUCCEEDED) + gangs.count(gang, FAILED)
                return max(0, share_of(notes[MAX_UNAVAILABLE], total) - (total - ended - running))
            if notes.get(MIN_AVAILABLE):
                return max(0, running - share_of(notes[MIN_AVAILABLE], total))
        except ValueError:
            return 1
        return 1


def _revocable(cls: TaskClass) -> bool:
    zone = cls.marks.get(ZONE)
    return zone == "*" if zone is not None else cls.marks.get(PREEMPTABLE) == "true"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"there is no time zone {name!r}; write for example 'Asia/Shanghai'") from None
