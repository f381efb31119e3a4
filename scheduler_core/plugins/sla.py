"""Plugin ``sla``: a gang that has waited for as long as it may is let in, and what it could have is kept for it.

Extension points: job_order, job_enqueueable, job_pipelined, holds_partly, job_problem. Argument: sla-waiting-time; the
PodGroup annotation ``volcano.sh/sla-waiting-time`` (or ``sla-waiting-time``) overrides it. Durations as Go writes them.
Source: volcano-semantics 4.12.

A plugin that rejects in the same or an earlier tier still wins: so that gang and overcommit do not decide, list sla in
a tier above them. On purpose different from upstream: the time runs from when the gang was first submitted, also where
its PodGroup was made anew since (pitfall 17); an annotation that cannot be read is shown as a reason instead of being
passed over. With ``compatibility: volcano`` as upstream."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from scheduler_core.algorithms.durations import parse_duration
from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.forms import Form, Silent, StaticKey, Suspects
from scheduler_core.framework.plugin import Argument, Plugin
from scheduler_core.framework.session import Session
from scheduler_core.state.status import Bools, Floats

KEYS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")


class Sla(Plugin):
    name: ClassVar[str] = "sla"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(
            name="sla-waiting-time", type="str", default="",
            doc="how long a gang may wait, e.g. 1h30m; empty = only gangs with the annotation have a deadline",
        ),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Mapping[str, Any]) -> None:
        if values["sla-waiting-time"]:
            try:
                parse_duration(values["sla-waiting-time"])
            except ValueError as error:
                raise ValueError(f"sla-waiting-time: {error}") from None

    def open(self, session: Session) -> None:
        super().open(session)
        text: str = self.values["sla-waiting-time"]
        self._everybodys = parse_duration(text) if text else math.inf
        self._deadlines: dict[int, float] = {}

    def deadline(self, gang: int) -> float:
        """When the gang has waited long enough, seconds since the epoch; inf = never."""
        known = self._deadlines.get(gang)
        if known is None:
            session = self.session
            since = session.group(gang).created if session.compat else session.waiting_since(gang)
            known = self._deadlines[gang] = since + self._wait(gang)
        return known

    def _wait(self, gang: int) -> float:
        text = self._written(gang)
        if text is None:
            return self._everybodys
        try:
            return parse_duration(text)
        except ValueError:
            return self._everybodys

    def _written(self, gang: int) -> str | None:
        notes = self.session.group(gang).annotations
        return next((notes[key] for key in KEYS if key in notes), None)

    def job_problem(self, gang: int) -> str | None:
        text = self._written(gang)
        if text is None or self.session.compat:
            return None
        try:
            parse_duration(text)
        except ValueError as error:
            return f"annotation {next(key for key in KEYS if key in self.session.group(gang).annotations)}: {error}"
        return None

    def job_order(self, gang: int) -> tuple[float]:
        """The earliest deadline first; gangs without one last."""
        return (self.deadline(gang),)

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Deadlines do not change in a session; it has a say about those that have passed."""
        if point == "job_order":
            return [StaticKey(self._column)]
        if point in ("job_pipelined", "job_enqueueable"):
            return [Silent(self.session.now >= self._column)]
        if point == "job_problem":
            return [Suspects(self._noted)]
        return None

    @cached_property
    def _noted(self) -> Bools:
        notes = (group.annotations for group in self.session.gangs.groups)
        return np.array([any(key in of_gang for key in KEYS) for of_gang in notes], dtype=np.bool_)

    @cached_property
    def _column(self) -> Floats:
        """float64 (G,): all deadlines."""
        session = self.session
        since = session.columns.since
        if session.compat:
            since = np.array([group.created for group in session.gangs.groups], dtype=np.float64)
        found: Floats = since + self._everybodys
        for gang in np.flatnonzero(self._noted).tolist():
            found[gang] = self.deadline(gang)
        return found

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot:
        return Ballot.PERMIT if self.session.now >= self.deadline(gang) else Ballot.ABSTAIN

    def job_pipelined(self, gang: int) -> Ballot:
        return Ballot.PERMIT if self.session.now >= self.deadline(gang) else Ballot.ABSTAIN

    def holds_partly(self, gang: int) -> bool:
        """Past its deadline a gang keeps what room it found as a promise, though it cannot start with it."""
        return self.session.now >= self.deadline(gang)
