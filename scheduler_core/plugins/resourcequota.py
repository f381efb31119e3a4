"""Plugin ``resourcequota``: a gang is not admitted whose pods the API server would refuse to make.

Extension points: job_enqueueable. No arguments. Units: milli-cores, MiB, thousandths of other resources.
Reads ResourceQuota objects: ``hard`` of cpu, memory, extended resources and pods; limits are not looked at.
Source: volcano-semantics 4.12.

On purpose different from upstream: pods that exist are in the quota's ``used`` already, so only those count that are
still to be made; scopes are honoured (upstream counts every gang against every quota); a quota without a status counts
the pods of its namespace. With ``compatibility: volcano`` the whole minimum counts against every quota."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.framework.combine import Ballot
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.forms import Form, Silent
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resource_quota import ResourceQuota
from scheduler_core.model.resources import MILLI, thousandths

Amounts = dict[str, int]


class ResourceQuotas(Plugin):
    name: ClassVar[str] = "resourcequota"

    def open(self, session: Session) -> None:
        """Quotas by namespace, and the gangs there that are short of pods."""
        super().open(session)
        self._quotas: dict[str, list[ResourceQuota]] = {}
        for quota in session.snapshot.resource_quotas:
            self._quotas.setdefault(quota.namespace, []).append(quota)
        self._used: dict[str, Amounts] = {}
        self._short: dict[str, dict[int, Amounts]] = {namespace: {} for namespace in self._quotas}
        for gang, group in enumerate(session.gangs.groups):
            if group.namespace in self._quotas:
                asked = self._to_make(gang)
                if asked:
                    self._short[group.namespace][gang] = asked

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot | Shortfall:
        """used + admitted + what is still to be made <= hard, in each quota that the gang is in."""
        group = self.session.group(gang)
        quotas = self._quotas.get(group.namespace)
        if quotas is None or (self.session.compat and group.min_resources is None):
            return Ballot.PERMIT
        asked = self._short[group.namespace].get(gang, {})
        for quota in quotas:
            if self._counts(quota, gang, asked):
                short = self._shortfall(quota, gang, asked)
                if short is not None:
                    return short
        return Ballot.PERMIT

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Gangs of namespaces without a quota are let in."""
        if point != "job_enqueueable":
            return None
        namespaces = (group.namespace for group in self.session.gangs.groups)
        return [Silent(np.array([name in self._quotas for name in namespaces], dtype=np.bool_), permits=True)]

    def _counts(self, quota: ResourceQuota, gang: int, asked: Amounts) -> bool:
        asks = any(_amounts(asked))
        return self.session.compat or _covers(quota, self.session.group(gang).priority_class, asks=asks)

    def _admitted(self, quota: ResourceQuota, gang: int) -> Amounts:
        """What other gangs of the namespace may have made that were let in and whose pods no quota shows yet."""
        total: Amounts = {}
        for other, asked in self._short[quota.namespace].items():
            if other != gang and other in self.session.promised and self._counts(quota, other, asked):
                total = _sum(total, asked)
        return total

    def _shortfall(self, quota: ResourceQuota, gang: int, asked: Amounts) -> Shortfall | None:
        used, pending = self._in_use(quota), self._admitted(quota, gang)
        for name, hard in sorted(quota.hard.items()):
            amount, held, admitted = asked.get(name, 0), used.get(name, 0), pending.get(name, 0)
            over = amount + held + admitted - hard
            if amount > 0 and over > 0:
                unit = 1 if name in ("cpu", "memory") else thousandths(name)
                return Shortfall(
                    code=ReasonCode.WAITING_FOR_QUOTA,
                    resource=name,
                    requested=amount * unit,
                    limit=hard * unit,
                    allocated=held * unit,
                    inqueue=admitted * unit,
                    short=over * unit,
                    whose=f"namespace {quota.namespace} (ResourceQuota {quota.name})",
                )
        return None

    def _to_make(self, gang: int) -> Amounts:
        """The part of a gang's minimum that no pod has asked for yet."""
        session, group = self.session, self.session.group(gang)
        needed = session.needed(gang)
        missing = needed if session.compat else needed - session.gangs.pending(gang)
        if missing <= 0 or group.min_resources is None:
            return {}
        # Where some pods exist, the others are taken to be like the average of the minimum, rounded up.
        whole = {"cpu": group.min_resources.cpu_milli, "memory": group.min_resources.memory_mib, **group.min_scalars}
        least = max(group.min_member, missing)
        return {**{name: -(-amount * missing // least) for name, amount in whole.items()}, "pods": missing}

    def _in_use(self, quota: ResourceQuota) -> Amounts:
        """What the quota says is used; the requests of the pods that it is about, where it says nothing."""
        if quota.used is not None:
            return quota.used
        known = self._used.get(quota.key)
        if known is None:
            known = {}
            for pod in self.session.snapshot.pods:
                if pod.namespace == quota.namespace and not pod.finished:
                    held = {"cpu": pod.cpu_milli, "memory": pod.memory_mib, "pods": 1, **pod.scalars}
                    if pod.card is not None and pod.card.resource:
                        held[pod.card.resource] = held.get(pod.card.resource, 0) + pod.card.milli // MILLI
                    if _covers(quota, pod.priority_class, asks=any(_amounts(held))):
                        known = _sum(known, held)
            self._used[quota.key] = known
        return known


def _amounts(amounts: Amounts) -> list[int]:
    return [amount for name, amount in amounts.items() if name != "pods"]


def _covers(quota: ResourceQuota, priority_class: str, *, asks: bool) -> bool:
    """Whether pods of a class, that ask for something or not, are in the scope; deadlines of pods are not known."""
    if quota.priority_classes is not None and priority_class not in quota.priority_classes:
        return False
    if priority_class in quota.other_classes:
        return False
    tests = {
        "BestEffort": not asks,
        "NotBestEffort": asks,
        "Terminating": False,
        "NotTerminating": True,
        "PriorityClass": bool(priority_class),
        "CrossNamespacePodAffinity": False,
    }
    return all(tests.get(scope.removeprefix("!"), True) != scope.startswith("!") for scope in quota.scopes)


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
