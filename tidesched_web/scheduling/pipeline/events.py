from collections.abc import Iterable, Iterator

import msgspec

from tidesched_web.engine.model import Event, Result, Snapshot, cards_to_json
from tidesched_web.scheduling.models import Decision, DecisionKind
from tidesched_web.scheduling.pipeline import timing
from tidesched_web.scheduling.pipeline.decisions import Draft

MOST_EVENTS = 100
# New numbers of the same reason are sent no sooner than this; the same ones again before the cluster forgets them.
NUMBERS_SECONDS = 300.0
AGAIN_SECONDS = 1800.0
_MOST_KEPT = 20_000
# The engine has events of its own about these, with the words of the founding documents; these two say nothing yet.
_SAID_OTHERWISE = frozenset({"WaitingForQuota", "ExceedsMaxQuota", "NoMatchingCard", "PendingEvaluation", "BackingOff"})

Key = tuple[str, str, str]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    event: Event
    count: int
    first: float
    reclaim: int | None = None


class _Told(msgspec.Struct):
    message: str
    count: int
    first: float
    at: float  # monotonic


class EventBook:
    def __init__(self, *, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._told: dict[Key, _Told] = {}
        self._stood: set[Key] = set()

    def load(self) -> None:
        rows = (
            Decision.objects.filter(cluster_id=self.cluster_id, kind=DecisionKind.EVENT)
            .order_by("-id")
            .values_list("target", "detail", "at")[:2000]
        )
        now = timing.monotonic()
        self._told = {}
        for target, detail, at in rows:
            told = _Told(detail["message"], detail.get("count", 1), detail.get("first", at.timestamp()), now)
            self._told.setdefault((detail["kind"], target, detail["reason"]), told)

    def due(self, result: Result, snapshot: Snapshot) -> list[Counted]:
        now = timing.monotonic()
        due: list[Counted] = []
        stands: set[Key] = set()
        for event, reclaim, act in _wanted(result, snapshot):
            key = (event.kind, event.name, event.reason)
            stands.add(key)
            before = self._told.get(key)
            if before is None:
                # What is over with the next session is not worth telling.
                if not act and key not in self._stood:
                    continue
            elif now - before.at < (
                AGAIN_SECONDS if event.message == before.message else 0 if act else NUMBERS_SECONDS
            ):
                continue
            if len(due) < MOST_EVENTS:
                count, first = (before.count + 1, before.first) if before is not None else (1, result.now)
                due.append(Counted(event=event, count=count, first=first, reclaim=reclaim))
        self._stood = stands
        return due

    def note(self, drafts: Iterable[Draft]) -> None:
        now = timing.monotonic()
        for draft in drafts:
            if draft.kind is DecisionKind.EVENT:
                detail = draft.detail
                key = (detail["kind"], draft.target, detail["reason"])
                self._told.pop(key, None)  # the newest stand last
                self._told[key] = _Told(detail["message"], detail["count"], detail["first"], now)
        for key in list(self._told)[: max(0, len(self._told) - _MOST_KEPT)]:
            del self._told[key]


def _wanted(result: Result, snapshot: Snapshot) -> Iterator[tuple[Event, int | None, bool]]:
    for event in result.events:
        yield event, None, True
    there = {group.key: group for group in snapshot.pod_groups if not group.made}
    for index, reclaim in enumerate(result.reclaims):
        for victim in reclaim.victims:
            if victim.gang in there:
                cards = ", ".join(f"{cards_to_json(milli):g} {card}" for card, milli in sorted(victim.cards.items()))
                text = (
                    f"{len(victim.pods)} pods ({cards or 'no cards'}) leave for {reclaim.reclaimer} by {reclaim.action}"
                )
                yield _of_gang(victim.gang, "Normal", "Evict", f"{text}: {reclaim.rule}"), index, True
    for reason in result.reasons:
        if reason.podgroup in there and str(reason.code) not in _SAID_OTHERWISE:
            yield _of_gang(reason.podgroup, "Warning", str(reason.code), reason.message), None, False


def _of_gang(name: str, type_: str, reason: str, message: str) -> Event:
    return Event(kind="PodGroup", name=name, type=type_, reason=reason, message=message)
