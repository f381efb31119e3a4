"""Plugin ``overcommit``: no more gangs are admitted than the cluster, a little enlarged, could hold.

Extension points: job_enqueueable. The promise that job_enqueued makes upstream is the ledger's, which the action keeps.
Argument: overcommit-factor. Units: milli-cores, MiB, thousandths of other resources.
Source: volcano-semantics 4.12 and pitfall 1; independent of capacity-card's overCommitFactor (contracts 3.3).

On purpose different from upstream: what a gang could take back does not count as used, where reclaim is among the
actions and its queue stays within what it deserves, so that a full cluster does not keep an entitled gang from ever
being looked at; what is leaving is not used; a gang without minResources is measured by its pods; a factor below 1 is
an error. With ``compatibility: volcano`` as upstream."""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.forms import Form, RowCeilings
from scheduler_core.framework.plugin import Argument, Plugin, number
from scheduler_core.framework.resource_rows import ResourceRows, columns, unknown_card, waved
from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.reason import ReasonCode
from scheduler_core.state.queue_ledger import NO_LIMIT
from scheduler_core.state.status import Ints

_TAKING_BACK = ("reclaim", "gangreclaim")


class Overcommit(Plugin):
    name: ClassVar[str] = "overcommit"
    arguments: ClassVar[tuple[Argument, ...]] = (
        number(
            "overcommit-factor", 1.2, (1.0, 1000.0),
            "gangs are admitted while used + promised + minimum <= all nodes together x factor",
        ),
    )  # fmt: skip

    def open(self, session: Session) -> None:
        """Enlarge the cluster once, by the factor as it is written."""
        super().open(session)
        self._rows = ResourceRows(session)
        factor = Fraction(repr(self.values["overcommit-factor"]))
        self._limits = [int(amount * factor) for amount in self._rows.total]
        self._seen_nodes = -1
        self._seen_queues: Ints | None = None
        self._takes_back = not session.compat and any(name in session.policy.actions for name in _TAKING_BACK)

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot | Shortfall:
        """used + promised + minimum <= total x factor, of what the gang asks for."""
        session, rows = self.session, self._rows
        if session.compat and session.group(gang).min_resources is None:
            return Ballot.PERMIT
        asked = rows.minimum(gang, demand)
        used = self._used()
        if self._takes_back and session.hooks.refusal("reclaimer", gang) is None:
            back = self._within_reach(session.queue_of(gang), asked)
            used = [max(0, a - b) for a, b in zip(used, back, strict=True)]
        queues = range(len(session.ledger))
        return (
            rows.shortfall(ReasonCode.OVER_COMMITTED, asked, self._limits, used, rows.promised(queues))
            or unknown_card(ReasonCode.OVER_COMMITTED, demand)
            or Ballot.PERMIT
        )

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """The same for all gangs, where the ledger has all resources."""
        session, rows, queues = self.session, self._rows, range(len(self.session.ledger))
        if point != "job_enqueueable" or not (rows.of_ledger and rows.exact()):
            return None
        limits, used = (columns([amounts] * len(queues)) for amounts in (self._limits, self._used()))
        if not self._takes_back:
            return [RowCeilings(rows, limits, used, True, waved(session))]
        no_line = [NO_LIMIT] * len(rows)
        lines = [no_line if (line := rows.deserved(queue)) is None else line for queue in queues]
        return [
            RowCeilings(
                rows,
                limits,
                used,
                True,
                waved(session),
                columns([self._others_surplus(queue) for queue in queues]),
                session.columns.may_reclaim,
                columns(lines),
                columns([rows.used(queue) for queue in queues]),
            )
        ]

    def _used(self) -> list[int]:
        """What pods take of the nodes; kept until a node changes."""
        changes = len(self.session.nodes.log)
        if self._seen_nodes != changes:
            self._on_nodes, self._seen_nodes = self._rows.on_nodes(leaving=self.session.compat), changes
        return self._on_nodes

    def _within_reach(self, queue: int, asked: list[int]) -> list[int]:
        """What other queues use beyond what they deserve and may lose, as far as the gang's own queue is entitled."""
        rows = self._rows
        own = rows.deserved(queue)
        if own is not None:
            sums = zip(asked, rows.used(queue), own, strict=True)
            if any(amount > 0 and amount + used > most for amount, used, most in sums):
                return [0] * len(rows)
        return self._others_surplus(queue)

    def _others_surplus(self, queue: int) -> list[int]:
        """What other queues use beyond what they deserve and may lose."""
        versions = self.session.ledger.versions
        if self._seen_queues is None or not np.array_equal(self._seen_queues, versions):
            self._surplus = [self._surplus_of(other) for other in range(len(self.session.ledger))]
            self._all_surplus = [sum(column) for column in zip(*self._surplus, strict=True)]
            self._seen_queues = np.array(versions, dtype=np.int64)
        return [a - b for a, b in zip(self._all_surplus, self._surplus[queue], strict=True)]

    def _surplus_of(self, queue: int) -> list[int]:
        spec, rows = self.session.ledger.queues[queue], self._rows
        if not spec.reclaimable or spec.service_type == ServiceType.INFERENCE.value:
            return [0] * len(rows)
        line = rows.deserved(queue) or [0] * len(rows)
        return [max(0, used - most) for used, most in zip(rows.used(queue), line, strict=True)]
