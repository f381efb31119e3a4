"""A level, by the code of the gang's reason: new numbers under the same code are not worth a write to each pod."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tidesched_web.clusters.kubernetes.outcomes import Outcome as Answer
from tidesched_web.engine.model import Edition, Pod, Reason, Result
from tidesched_web.scheduling.pipeline import timing
from tidesched_web.scheduling.pipeline.sending import Route

Change = tuple[str, Pod | None]


class PodChanges:
    """O(what changed) where the editions of the watch are known (the last few only), else O(pods)."""

    def __init__(self) -> None:
        self._pods: Sequence[Pod] | None = None

    def follow(self, pods: Sequence[Pod]) -> tuple[bool, Iterable[Change]]:
        before, self._pods = self._pods, pods
        changes = pods.changes_since(before) if before is not None and isinstance(pods, Edition) else None
        if changes is None:
            return True, ((pod.key, pod) for pod in pods)
        return False, changes[0].items()


# So many pods at most with one look, and so often: a backlog of a thousand pods is written within a minute.
MOST_AT_ONCE = 20
LOOK_SECONDS = 1.0
# Another code of the same gang is written no sooner; nor the same one that is not seen to stay.
AGAIN_SECONDS = 60.0
# Where nodes lack the room, the condition has the reason that autoscalers look for; else a node more is of no use.
_NO_ROOM: Final = frozenset({"WaitingForCards", "WaitingForResources", "NoNodeMatches", "NoMatchingCard", "Fragmented"})


class PodReasonBook:
    def __init__(self) -> None:
        self._waiting = Waiting()
        self._looked_at = float("-inf")
        # By gang: the code and since which look it holds, the code that all its pods show, the last one written.
        self._stands: dict[str, tuple[str, int]] = {}
        self._shown: dict[str, str] = {}
        self._told_gang: dict[str, tuple[str, float]] = {}
        self._told: dict[str, tuple[str, float]] = {}
        self._looks = 0

    def send(
        self,
        result: Result,
        route: Route,
        *,
        pods: Sequence[Pod],
        shown: Callable[[Iterable[str]], Mapping[str, str]],
        resting: Collection[str],
    ) -> int:
        """``pods`` are those of the watch alone, without assumptions; ``shown`` is the code that a pod shows now.
        ``resting``: pods whose status the server did not take, which must not keep others waiting."""
        for gang in self._waiting.follow(pods):
            self._shown.pop(gang, None)
        now = timing.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return 0
        self._looked_at, self._looks = now, self._looks + 1
        self._forget(now)
        bound = {bind.pod for bind in result.binds}
        calls: list[tuple[Pod, Reason]] = []
        for reason in self._due(result.reasons, now):
            pods_of = self._waiting.of(reason.podgroup)
            there = shown(pods_of)
            missing = [pod for key, pod in pods_of.items() if there.get(key, "") != reason.code]
            if not missing:
                self._shown[reason.podgroup] = str(reason.code)
                continue
            calls += [
                (pod, reason)
                for pod in sorted(missing, key=lambda pod: pod.key)
                if pod.key not in bound
                and pod.key not in resting
                and not route.assumed.is_bound(pod.key)
                and self._told.get(pod.uid, ("", now))[0] != reason.code
            ]
            if len(calls) >= MOST_AT_ONCE:
                break
        del calls[MOST_AT_ONCE:]
        answers = route.send([_call(route, pod, reason) for pod, reason in calls]) if calls else []
        for (pod, reason), answer in zip(calls, answers, strict=True):
            if answer.settled:
                self._told[pod.uid] = str(reason.code), now
                if self._told_gang.get(reason.podgroup, ("", now))[0] != reason.code:
                    self._told_gang[reason.podgroup] = str(reason.code), now
        return sum(answer.done for answer in answers)

    def _due(self, reasons: Iterable[Reason], now: float) -> Iterator[Reason]:
        stands: dict[str, tuple[str, int]] = {}
        due: list[tuple[int, Reason]] = []
        for reason in reasons:
            gang, code = reason.podgroup, str(reason.code)
            before = self._stands.get(gang)
            since = before[1] if before is not None and before[0] == code else self._looks
            stands[gang] = code, since
            if since == self._looks or self._shown.get(gang) == code or not self._waiting.of(gang):
                continue
            if self._told_gang.get(gang, (code, now))[0] == code:
                due.append((since, reason))
        self._stands = stands
        due.sort(key=lambda one: (-one[0], one[1].podgroup))
        return (reason for _since, reason in due)

    def _forget(self, now: float) -> None:
        edge = now - AGAIN_SECONDS
        self._told = {uid: told for uid, told in self._told.items() if told[1] > edge}
        self._told_gang = {gang: told for gang, told in self._told_gang.items() if told[1] > edge}


class Waiting:
    def __init__(self) -> None:
        self._changes = PodChanges()
        self._gang_of: dict[str, str] = {}
        self._waiting: dict[str, dict[str, Pod]] = {}

    def of(self, gang: str) -> Mapping[str, Pod]:
        return self._waiting.get(gang, {})

    def follow(self, pods: Sequence[Pod]) -> set[str]:
        anew, changes = self._changes.follow(pods)
        changed: set[str] = set()
        if anew:
            changed = set(self._waiting)
            self._gang_of, self._waiting = {}, {}
        for key, pod in changes:
            self._put(key, pod, changed)
        return changed

    def _put(self, key: str, pod: Pod | None, changed: set[str]) -> None:
        gang = _waits_in(pod) if pod is not None else ""
        before = self._gang_of.pop(key, "")
        if before:
            del self._waiting[before][key]
            changed.add(before)
            if not self._waiting[before]:
                del self._waiting[before]
        if gang and pod is not None:
            self._gang_of[key] = gang
            self._waiting.setdefault(gang, {})[key] = pod
            changed.add(gang)


def _waits_in(pod: Pod) -> str:
    """The gang in which a pod waits for a node; empty where it does not. A gated pod has a condition of its own."""
    return "" if pod.node or pod.finished or pod.deleted is not None or pod.gated else pod.group_key


def _call(route: Route, pod: Pod, reason: Reason) -> Callable[[], Answer]:
    code, text = str(reason.code), f"{reason.code}: {reason.message}"
    now = route.now.timestamp()

    def tell() -> Answer:
        answer = route.writes.say_waiting(
            pod.namespace,
            pod.name,
            uid=pod.uid,
            reason="Unschedulable" if code in _NO_ROOM else code,
            message=text,
            now=now,
        )
        if not answer.done:
            return answer
        return route.writes.write_event(
            kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid,
            type_="Warning", reason=code, message=reason.message, now=now,
        )  # fmt: skip

    return tell
