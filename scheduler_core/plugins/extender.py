"""Plugin ``extender``: asks a service of one's own by HTTP where it has a say.

Extension points: task_predicate, task_node_order, preemptable, reclaimable, overused, job_enqueueable, job_ready; what
has no verb is not asked. Each question is a POST of JSON to ``extender.urlPrefix``/verb:

* predicateVerb ``{task, nodes}`` -> ``{"refused": {node: message}}``
* prioritizeVerb ``{task, nodes}`` -> ``{"scores": {node: number}}``, added to the other scores
* preemptableVerb, reclaimableVerb ``{evictor, evictees}`` -> ``{"status": -1|0|1, "victims": [namespace/name]}``; 0
  abstains
* queueOverusedVerb ``{queue}`` -> ``{"overused": bool}``
* jobEnqueueableVerb ``{job}`` -> ``{"status": -1|0|1}``, reject, abstain, permit
* jobReadyVerb ``{job}`` -> ``{"status": bool}``
* onSessionOpenVerb ``{jobs, nodes, queues}`` and onSessionCloseVerb ``{}``; the answers do not matter

With ``extender.managedResources`` only tasks that ask for one of them are spoken of. A question that fails (no answer
in time, an error, an answer of another form) counts as "no objection" with ``extender.ignorable: true``, else as no.
Source: volcano-semantics 4.12, contracts 3.7: the client comes from the host (``run_session(..., extenders=...)``), so
that a session stays a function of its input and of these answers; a question is asked once a session.
On purpose different from upstream: one question for all nodes instead of one for each, amounts in our own units, and a
prioritizeVerb that fails leaves the other scores as they are."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from scheduler_core.algorithms.durations import parse_duration
from scheduler_core.framework.combine import Ballot, Opinion
from scheduler_core.framework.demand import Demand
from scheduler_core.framework.extender_client import ExtenderClient, ExtenderError
from scheduler_core.framework.plugin import Argument, Plugin, switch
from scheduler_core.framework.session import Session
from scheduler_core.model.errors import BadInput
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import Bools, Floats, TaskStatus

_VERBS = {
    "onSessionOpen": "the beginning of a session",
    "onSessionClose": "its end",
    "predicate": "which nodes a task must not take",
    "prioritize": "scores of nodes for a task",
    "preemptable": "whom a task may preempt",
    "reclaimable": "from whom a task may take back",
    "queueOverused": "whether a queue has more than it should",
    "jobEnqueueable": "whether a gang may be admitted",
    "jobReady": "whether a gang may run as it is",
}


class Extender(Plugin):
    name: ClassVar[str] = "extender"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument(name="extender.urlPrefix", type="str", default="", doc="address that the verbs are appended to"),
        Argument(name="extender.httpTimeout", type="str", default="1s", doc="how long an answer may take"),
        *(
            Argument(name=f"extender.{verb}Verb", type="str", default="", doc=f"path of the question: {what}")
            for verb, what in _VERBS.items()
        ),
        switch("extender.ignorable", False, "a question that fails counts as no objection"),
        Argument(
            name="extender.managedResources", type="list", default=[],
            doc="speak only of tasks that ask for one of these: extended resources or card types; empty = of all",
        ),
    )  # fmt: skip

    @classmethod
    def check(cls, values: Any) -> None:
        """There must be an address, and a time that is one."""
        if not values["extender.urlPrefix"].startswith(("http://", "https://")):
            raise ValueError("extender.urlPrefix is an address such as https://extender.example:8443/volcano")
        parse_duration(values["extender.httpTimeout"])

    def connect(self, extenders: ExtenderClient | None) -> None:
        self._client = extenders

    def open(self, session: Session) -> None:
        """Say that a session begins. Raises BadInput: ``no_extender_client``, where no client is lent and the questions
        matter."""
        super().open(session)
        self._client = getattr(self, "_client", None)
        self._ignorable = bool(self.values["extender.ignorable"])
        if self._client is None and not self._ignorable:
            raise BadInput(
                "no_extender_client",
                "the policy has an extender and this process cannot ask it",
                value=self.values["extender.urlPrefix"],
                hint="give run_session extenders=..., or set extender.ignorable: true",
            )
        self._timeout = parse_duration(self.values["extender.httpTimeout"])
        self._managed = frozenset(self.values["extender.managedResources"])
        self._answers: dict[tuple[str, bytes], dict[str, Any] | None] = {}
        self._ask("onSessionOpen", lambda: {
            "jobs": [self._job(gang) for gang in range(len(session.gangs))],
            "nodes": list(session.axes.nodes),
            "queues": [queue.name for queue in session.ledger.queues],
        })  # fmt: skip

    def remember(self) -> dict[str, float]:
        """Nothing; it is the last that a session asks of a plugin, so the service hears of its end."""
        self._ask("onSessionClose", dict)
        return {}

    def task_predicate(self, task: int) -> tuple[str, Bools] | None:
        """Nodes that the service does not refuse; none where it cannot be asked and matters."""
        if not self._asks("predicate", task):
            return None
        nodes = self.session.axes.nodes
        answer = self._ask("predicate", lambda: {"task": self._task(task), "nodes": list(nodes)})
        refused = _mapping(answer, "refused")
        if refused is None:
            return None if self._ignorable else (NodeRefusal.EXTENDER, np.zeros(len(nodes), dtype=np.bool_))
        return NodeRefusal.EXTENDER, np.array([node not in refused for node in nodes], dtype=np.bool_)

    def task_node_order(self, task: int) -> Floats | None:
        """The scores of the service; float64."""
        if not self._asks("prioritize", task):
            return None
        nodes = self.session.axes.nodes
        answer = self._ask("prioritize", lambda: {"task": self._task(task), "nodes": list(nodes)})
        scores = _mapping(answer, "scores") or {}
        return np.array([_number(scores.get(node, 0)) for node in nodes], dtype=np.float64)

    def preemptable(self, evictor: int, candidates: Sequence[int]) -> Opinion:
        return self._victims("preemptable", evictor, candidates)

    def reclaimable(self, evictor: int, candidates: Sequence[int]) -> Opinion:
        return self._victims("reclaimable", evictor, candidates)

    def _victims(self, verb: str, evictor: int, candidates: Sequence[int]) -> Opinion:
        if not self._asks(verb, evictor):
            return Opinion(None)
        answer = self._ask(
            verb, lambda: {"evictor": self._task(evictor), "evictees": [self._task(task) for task in candidates]}
        )
        status = (answer or {}).get("status")
        if answer is None or status not in (-1, 0, 1):
            return (
                Opinion(None)
                if self._ignorable
                else Opinion(frozenset(), dict.fromkeys(candidates, Rule.EXTENDER.text()))
            )
        if status == 0:
            return Opinion(None)
        named = answer.get("victims")
        names = {name for name in named if isinstance(name, str)} if isinstance(named, list) else set()
        allowed = frozenset(task for task in candidates if self.session.tasks.keys[task] in names)
        return Opinion(allowed, {task: Rule.EXTENDER_OTHERS.text() for task in candidates if task not in allowed})

    def overused(self, queue: int) -> bool:
        if not self._verb("queueOverused"):
            return False
        spec = self.session.ledger.queues[queue]
        sent = {"name": spec.name, "weight": spec.weight, "priority": spec.priority, "state": spec.state.value}
        return self._truth("queueOverused", {"queue": sent}, "overused", failed=not self._ignorable)

    def job_enqueueable(self, gang: int, demand: Demand) -> Ballot:
        if not self._verb("jobEnqueueable"):
            return Ballot.ABSTAIN
        status = (self._ask("jobEnqueueable", lambda: {"job": self._job(gang)}) or {}).get("status")
        if isinstance(status, bool) or status not in (-1, 0, 1):
            return Ballot.PERMIT if self._ignorable else Ballot.REJECT
        return Ballot(status)

    def job_ready(self, gang: int) -> bool:
        if not self._verb("jobReady"):
            return True
        return self._truth("jobReady", {"job": self._job(gang)}, "status", failed=self._ignorable)

    def _truth(self, verb: str, sent: dict[str, Any], key: str, *, failed: bool) -> bool:
        answer = (self._ask(verb, lambda: sent) or {}).get(key)
        return answer if isinstance(answer, bool) else failed

    def _verb(self, verb: str) -> str:
        return str(self.values[f"extender.{verb}Verb"])

    def _asks(self, verb: str, task: int) -> bool:
        """There is such a verb, and the task asks for what the service looks after."""
        if not self._verb(verb):
            return False
        pod, cls = self.session.tasks.pod(task), self.session.cluster.class_of(task)
        return not self._managed or bool(self._managed & {cls.resource, *cls.names, *pod.scalars})

    def _ask(self, verb: str, sent: Any) -> dict[str, Any] | None:
        """The answer, or None where there is none; the same question is asked once a session."""
        path = self._verb(verb)
        if not path or self._client is None:
            return None
        body = msgspec.json.encode(sent(), order="deterministic")
        if (path, body) not in self._answers:
            url = f"{self.values['extender.urlPrefix'].rstrip('/')}/{path.lstrip('/')}"
            answer: dict[str, Any] | None = None
            try:
                raw = self._client.post(url, body, self._timeout)
                answer = msgspec.json.decode(raw, type=dict[str, Any]) if raw else {}
            except (ExtenderError, msgspec.DecodeError):
                self.session.trace.count("questions that an extender did not answer")
            self._answers[path, body] = answer
        return self._answers[path, body]

    def _job(self, gang: int) -> dict[str, Any]:
        session = self.session
        group = session.group(gang)
        return {
            "name": session.gangs.names[gang],
            "queue": group.queue,
            "min_member": group.min_member,
            "priority": group.priority,
            "phase": session.phase[gang].value,
            "ready": session.gangs.ready(gang),
            "pending": session.gangs.pending(gang),
        }

    def _task(self, task: int) -> dict[str, Any]:
        session = self.session
        pod, gang = session.tasks.pod(task), int(session.tasks.gang[task])
        node = int(session.tasks.node[task])
        return {
            "name": session.tasks.keys[task],
            "job": session.gangs.names[gang] if gang >= 0 else "",
            "priority": pod.priority,
            "cpu_milli": pod.cpu_milli,
            "memory_mib": pod.memory_mib,
            "scalars": pod.scalars,
            "card": None if pod.card is None else {"names": list(pod.card.names), "milli": pod.card.milli},
            "labels": pod.labels,
            "annotations": pod.annotations,
            "node": session.axes.nodes[node] if node >= 0 else "",
            "status": TaskStatus(int(session.tasks.status[task])).name.lower(),
        }


def _mapping(answer: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    """The mapping under a key; an empty one where the key is absent, None for no or another answer."""
    found = None if answer is None else answer.get(key, {})
    return found if isinstance(found, dict) else None


def _number(value: object) -> float:
    """A finite number of at most a million either way, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(max(-1e6, min(1e6, value)))
