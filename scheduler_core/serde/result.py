"""The result document: sorted keys, lists sorted by name, one trailing newline."""

import math
from datetime import UTC, datetime
from typing import Any

import orjson

from scheduler_core.model.decision import Bind, Event, Eviction, GangOutcome, QueueOutcome, Reclaim, Result, cards_json
from scheduler_core.model.reason import Holder, Reason, ReasonNumbers, Remedy

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def format_time(seconds: float) -> str:
    """Seconds since the epoch as RFC 3339 in UTC, to the microsecond where there is a fraction."""
    whole = math.floor(seconds)
    micro = round((seconds - whole) * 1e6)
    if micro == 1_000_000:
        whole, micro = whole + 1, 0
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{f'{micro:06d}'.rstrip('0')}Z" if micro else f"{text}Z"


def result_to_json(result: Result, timings: bool = False) -> dict[str, Any]:
    """The document of one session (contracts 2): times in RFC 3339, CPU in milli-cores, memory in bytes, cards counted.
    ``timings``: with ``timings_ms``; without them the same input gives the same bytes."""
    document: dict[str, Any] = {
        "version": result.version,
        "now": format_time(result.now),
        "binds": [_bind(bind) for bind in sorted(result.binds, key=lambda b: b.pod)],
        "evictions": [_eviction(e) for e in sorted(result.evictions, key=lambda e: (e.pod, e.reclaimer))],
        "pipelined": [_bind(bind) for bind in sorted(result.pipelined, key=lambda b: b.pod)],
        "podgroups": [_gang(gang) for gang in sorted(result.podgroups, key=lambda g: g.name)],
        "queues": [_queue(queue) for queue in sorted(result.queues, key=lambda q: q.name)],
        "reclaims": [reclaim_to_json(r) for r in sorted(result.reclaims, key=lambda r: (r.reclaimer, r.action))],
        "reasons": [reason_to_json(reason) for reason in sorted(result.reasons, key=lambda r: r.podgroup)],
        "findings": [finding.to_json() for finding in result.findings],
        "events": [_event(e) for e in sorted(result.events, key=lambda e: (e.kind, e.name, e.reason, e.message))],
    }
    if timings:
        document["timings_ms"] = {name: round(ms, 3) for name, ms in result.timings_ms.items()}
    return document


def dump(result: Result, timings: bool = False) -> bytes:
    """The document as bytes."""
    return orjson.dumps(result_to_json(result, timings), option=_OPTIONS)


def reason_to_json(reason: Reason) -> dict[str, Any]:
    return {
        "podgroup": reason.podgroup,
        "code": reason.code.value,
        "numbers": _numbers(reason.numbers),
        "message": reason.message,
        "remedy": None if reason.remedy is None else _remedy(reason.remedy),
    }


def reclaim_to_json(reclaim: Reclaim) -> dict[str, Any]:
    return {
        "reclaimer": reclaim.reclaimer,
        "queue": reclaim.queue,
        "action": reclaim.action,
        "needed": reclaim.needed.to_json(),
        "freed": reclaim.freed.to_json(),
        "victims": [
            {
                "gang": victim.gang,
                "queue": victim.queue,
                "pods": sorted(victim.pods),
                "cards": cards_json(victim.cards),
                "work_lost_card_seconds": _number(victim.work_lost_card_seconds),
            }
            for victim in sorted(reclaim.victims, key=lambda v: v.gang)
        ],
        "rule": reclaim.rule,
        "votes": [
            {"tier": vote.tier, "plugin": vote.plugin, "vote": vote.vote}
            for vote in sorted(reclaim.votes, key=lambda v: (v.tier, v.plugin, v.vote))
        ],
        "refused": [{"gang": r.gang, "rule": r.rule} for r in sorted(reclaim.refused, key=lambda r: (r.gang, r.rule))],
    }


def _bind(bind: Bind) -> dict[str, Any]:
    return {"pod": bind.pod, "node": bind.node}


def _eviction(eviction: Eviction) -> dict[str, Any]:
    return {
        "pod": eviction.pod,
        "node": eviction.node,
        "gang": eviction.gang,
        "reclaimer": eviction.reclaimer,
        "action": eviction.action,
        "role": eviction.role.value,
        "reason": eviction.reason,
    }


def _gang(gang: GangOutcome) -> dict[str, Any]:
    return {
        "name": gang.name,
        "queue": gang.queue,
        "service_type": gang.service_type,
        "phase": gang.phase.value,
        "min_member": gang.min_member,
        "ready": gang.ready,
        "bound": gang.bound,
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
            for c in sorted(gang.conditions, key=lambda c: (c.type, c.reason))
        ],
    }


def _queue(queue: QueueOutcome) -> dict[str, Any]:
    return {
        "name": queue.name,
        "state": queue.state,
        "quota": queue.quota.to_json(),
        "allocated": queue.allocated.to_json(),
        "inqueue": queue.inqueue.to_json(),
        "elastic": queue.elastic.to_json(),
        "deserved": queue.deserved.to_json(),
        "share": _number(queue.share),
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "name": event.name,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
    }


def _numbers(numbers: ReasonNumbers) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if numbers.field is not None:
        document["field"] = numbers.field
    if numbers.resource is not None:
        document["resource"] = numbers.resource
    for name in ("requested", "limit", "allocated", "inqueue", "free", "short"):
        value = getattr(numbers, name)
        if value is not None:
            document[name] = _number(value)
    if numbers.holders is not None:
        document["holders"] = [_holder(holder) for holder in numbers.holders]
    if numbers.position is not None:
        document["position"] = numbers.position
    if numbers.nodes is not None:
        document["nodes"] = dict(sorted(numbers.nodes.items()))
    return document


def _holder(holder: Holder) -> dict[str, Any]:
    document = {"gang": holder.gang, "queue": holder.queue, "amount": _number(holder.amount)}
    since = holder.promised_since
    return document if since is None else {**document, "promised_since": format_time(since)}


def _remedy(remedy: Remedy) -> dict[str, Any]:
    document = {
        "change": remedy.change,
        "queue": remedy.queue,
        "card": remedy.card,
        "by": None if remedy.by is None else _number(remedy.by),
        "gang": remedy.gang,
        "above": remedy.above,
        "verified": remedy.verified,
    }
    return {name: value for name, value in document.items() if value is not None}


def _number(value: float) -> int | float:
    """Rounded so that the last bits, which differ between processors, are not shown; whole numbers as such."""
    rounded = round(float(value), 6)
    return int(rounded) if rounded.is_integer() else rounded
