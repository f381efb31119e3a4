import datetime as dt
from collections.abc import Iterable, Mapping

import msgspec
from django.db.models import Count, QuerySet
from django.utils import timezone

from tidesched_web.common.hints import cut
from tidesched_web.common.locking import require_transaction
from tidesched_web.engine.model import Node, Pod, ReasonNumbers, Result, Snapshot
from tidesched_web.workloads import reason_figures, reason_figures_services
from tidesched_web.workloads.gang_rows import GangValues, PodValues, Seen, look, moment, pod_values
from tidesched_web.workloads.models import TERMINAL_GANG_STATES, Gang, GangEvent, GangEventKind, GangPod, GangState
from tidesched_web.workloads.timeline import (
    LASTS,
    MOST,
    MOST_MESSAGE,
    LeftGang,
    LeftGangs,
    TimelineEntry,
    came_back,
    entries,
)

_KEY = ("cluster", "namespace", "name", "uid")
_WRITTEN = (
    "queue", "queue_name", "service_type", "owner_kind", "owner_name", "priority", "priority_class", "min_member",
    "replicas", "ready", "bound", "phase", "state", "needs", "cards", "cpu_milli", "memory_mib", "position",
    "reason_code", "reason_numbers", "reason_message", "reason_since", "figures_number", "figures_at", "submitted_at",
    "waiting_since", "admitted_at", "spared_until", "started_at", "ended_at", "seen_at", "gone_at", "session_id",
)  # fmt: skip
_POD_WRITTEN = (
    "name", "role", "phase", "leaving", "node", "card", "card_milli", "card_indices", "started_at"
)  # fmt: skip


class _Known(msgspec.Struct):
    id: int
    key: str
    values: GangValues | None
    state: str
    phase: str
    reason_code: str
    reason_since: dt.datetime | None
    waiting_since: dt.datetime | None
    admitted_at: dt.datetime | None
    figures: tuple[ReasonNumbers, str] | None  # of its reason, with the sentence
    started_at: dt.datetime | None
    ended_at: dt.datetime | None
    spared_until: dt.datetime | None
    promised: bool
    running: bool
    pods: dict[str, tuple[Pod | None, PodValues | None]]
    reclaim_id: int | None = None  # by which it lost its cards
    owner_uid: str = ""

    @property
    def ran(self) -> bool:
        return self.started_at is not None or self.state in (GangState.RUNNING, GangState.RECLAIMED)


class GangRecorder:
    """Used by the one holder of the cluster's lease; another process loads it anew (:meth:`load`)."""

    def __init__(self, *, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._known: dict[str, _Known] = {}  # by uid
        self._left = LeftGangs()
        self.written: list[Gang] = []  # by the last session
        self._figures_at: dt.datetime | None = None  # (wall) when all figures that had moved were written
        self._said_at: dt.datetime | None = None  # (wall) when the session that they are of was said
        self._newer = True  # some rows have figures of a later session

    def load(self) -> None:
        self._known, self._left = {}, LeftGangs()
        self._figures_at, self._said_at, self._newer = None, None, True
        rows = Gang.objects.filter(cluster_id=self.cluster_id).defer("manifest", "reason_numbers", "reason_message")
        here = rows.filter(gone_at__isnull=True)
        owners = dict(here.values_list("pk", "manifest__owner_uid"))
        for gang in here:
            self._known[gang.uid] = _of_row(gang, owners.get(gang.pk))
        self._load_left(rows)
        self._load_losses(self._known.values())
        by_id = {known.id: known for known in self._known.values()}
        pods = GangPod.objects.filter(gang__cluster_id=self.cluster_id, gang__gone_at__isnull=True)
        for gang_id, uid in pods.values_list("gang_id", "uid"):
            if gang_id in by_id:
                by_id[gang_id].pods[uid] = (None, None)

    def _load_left(self, rows: QuerySet[Gang]) -> None:
        lately = rows.filter(gone_at__gte=timezone.now() - LASTS, state=GangState.RECLAIMED).order_by("-gone_at", "-id")
        gone = {gang.pk: gang for gang in lately[:MOST]}
        owners = dict(Gang.objects.filter(pk__in=gone).values_list("pk", "manifest__owner_uid"))
        ends = GangEvent.objects.filter(gang_id__in=gone, kind=GangEventKind.GONE).values_list("gang_id", "at")
        ended = dict(ends.order_by("id"))
        known = {pk: _of_row(gang, owners.get(pk)) for pk, gang in gone.items()}
        self._load_losses(known.values())
        for pk, gang in reversed(gone.items()):
            assert gang.gone_at is not None
            self._left.note(gang.key, _as_left(known[pk], at=ended.get(pk, gang.gone_at), wall_at=gang.gone_at))

    def _load_losses(self, known: Iterable[_Known]) -> None:
        lost = {one.id: one for one in known if one.state == GangState.RECLAIMED}
        events = GangEvent.objects.filter(gang_id__in=lost, kind=GangEventKind.RECLAIMED).order_by("id")
        for gang_id, at, reclaim_id in events.values_list("gang_id", "at", "reclaim_id") if lost else ():
            lost[gang_id].waiting_since, lost[gang_id].reclaim_id = at, reclaim_id

    def states(self) -> dict[str, str]:
        return {uid: known.state for uid, known in self._known.items()}

    def reason_since(self, uid: str, code: str) -> dt.datetime | None:
        known = self._known.get(uid)
        return known.reason_since if known is not None and known.reason_code == code else None

    def record(
        self,
        *,
        snapshot: Snapshot,
        result: Result,
        sent: bool,
        session_id: int,
        number: int,
        at: dt.datetime,
        wall_at: dt.datetime,
        queue_ids: dict[str, int],
        reclaim_of: dict[str, int],
        spared: Mapping[str, float] | None = None,
    ) -> int:
        """In the caller's transaction. ``reclaim_of``: by the gang's key, what felled it in this session."""
        require_transaction()
        seen = look(snapshot, result, sent=sent, states=self.states(), spared=spared)
        present = {gang.values.uid for gang in seen.values()}
        gone = [uid for uid in self._known if uid not in present]
        self._remember(gone, at=at, wall_at=wall_at)
        changed: list[tuple[Gang, Seen, list[TimelineEntry]]] = []
        moved: list[Seen] = []
        for key, gang in seen.items():
            row = self._changed_row(
                key, gang, at=at, wall_at=wall_at, session_id=session_id, number=number, queue_ids=queue_ids
            )
            if row is None and self._has_moved(gang):
                moved.append(gang)
            if row is not None:
                changed.append(row)
                if gang.values.state == GangState.RECLAIMED:
                    known = self._known[gang.values.uid]
                    known.reclaim_id = reclaim_of.get(key, known.reclaim_id)
        self._write_gangs(changed, at=at, wall_at=wall_at, session_id=session_id, reclaim_of=reclaim_of)
        told = any(gang.reason is not None for _row, gang, _entries in changed)
        moved = self._write_figures(moved, told=told, number=number, at=at, wall_at=wall_at, session_id=session_id)
        self._write_pods(seen.values(), {node.name: node for node in snapshot.nodes})
        self._write_gone(gone, at=at, wall_at=wall_at, session_id=session_id)
        self.written = [row for row, _seen, _entries in changed]
        self.written += [self._named(gang) for gang in moved]
        return len(self.written) + len(gone)

    def _has_moved(self, gang: Seen) -> bool:
        known = self._known[gang.values.uid]
        return gang.reason is not None and known.figures != (gang.reason.numbers, gang.reason.message)

    def _write_figures(
        self, moved: list[Seen], *, told: bool, number: int, at: dt.datetime, wall_at: dt.datetime, session_id: int
    ) -> list[Seen]:
        """Of all or of none. ``told``: the session has written rows of waiting gangs, with its own figures."""
        due = self._figures_at is None or wall_at - self._figures_at >= reason_figures.EVERY
        if moved and not due and not (told and len(moved) <= reason_figures.MOST_BETWEEN):
            self._newer = self._newer or told
            return []
        figures = {}
        for gang in moved:
            known, reason = self._known[gang.values.uid], gang.reason
            assert reason is not None
            known.figures = (reason.numbers, reason.message)
            figures[known.id] = (reason_figures.document_of(reason), cut(reason.message, MOST_MESSAGE))
        reason_figures_services.write(figures, number=number, at=at, session_id=session_id, wall_at=wall_at)
        if moved or told:
            self._figures_at = wall_at
        waits = any(known.reason_code for known in self._known.values())
        quiet = self._said_at is not None and wall_at - self._said_at < reason_figures.SAID_EVERY
        if moved or told or (waits and (self._newer or not quiet)):
            reason_figures_services.say(cluster_id=self.cluster_id, number=number, at=at)
            self._said_at, self._newer = wall_at, False
        return moved

    def _named(self, gang: Seen) -> Gang:
        values, group = gang.values, gang.group
        return Gang(
            pk=self._known[values.uid].id, cluster_id=self.cluster_id, namespace=group.namespace,
            name=group.name[:253], state=values.state, queue_name=values.queue_name,
        )  # fmt: skip

    def _remember(self, gone: list[str], *, at: dt.datetime, wall_at: dt.datetime) -> None:
        """Gangs that had cards and leave may come back under a new PodGroup; those that are over do not."""
        for uid in gone:
            known = self._known[uid]
            if known.ran and known.state not in TERMINAL_GANG_STATES:
                self._left.note(known.key, _as_left(known, at=at, wall_at=wall_at))
        self._left.forget_old(wall_at)

    def _new(self, key: str, gang: Seen) -> tuple[_Known, list[TimelineEntry]]:
        known = _Known(0, key, None, "", "", "", None, None, None, None, None, None, None, False, False, {})
        self._known[gang.values.uid] = known
        left = self._left.take(gang.group, running_at=gang.running_at)
        if left is None:
            return known, []
        made_at = moment(gang.group.created) if gang.group.created else gang.values.submitted_at
        known.waiting_since, known.spared_until = left.lost_at or made_at, left.spared_until
        return known, came_back(ran_at=left.ran_at, lost_at=left.lost_at, reclaim_id=left.reclaim_id, made_at=made_at)

    def _changed_row(
        self, key: str, gang: Seen, *, at: dt.datetime, wall_at: dt.datetime, session_id: int, number: int,
        queue_ids: dict[str, int],
    ) -> tuple[Gang, Seen, list[TimelineEntry]] | None:  # fmt: skip
        known = self._known.get(gang.values.uid)
        story: list[TimelineEntry] = []
        new = known is None
        if known is None:
            known, story = self._new(key, gang)
        if gang.values.spared_until is None and known.spared_until is not None:
            # Its page says since when it may be evicted again.
            gang.values = msgspec.structs.replace(gang.values, spared_until=known.spared_until)
        values = gang.values
        running = gang.running_at is not None
        if not new and known.values == values and (known.promised, known.running) == (gang.promised, running):
            return None
        known.owner_uid = gang.group.owner_uid or known.owner_uid
        timeline = entries(
            gang,
            was_state=known.state,
            was_phase=known.phase,
            was_reason=known.reason_code,
            was_promised=known.promised,
            was_running=known.running,
        )
        if story:
            timeline[1:1] = story  # behind its submission
        if values.reason_code != known.reason_code:
            known.reason_since = at if values.reason_code else None
        known.waiting_since = _waits_since(known, values, at)
        if values.state != GangState.ADMITTED:
            known.admitted_at = None
        elif known.admitted_at is None:
            known.admitted_at = at
        if running and not known.running:
            known.started_at = gang.running_at
        if values.state in (GangState.FINISHED, GangState.FAILED):
            known.ended_at = known.ended_at or at
        namespace, _, name = key.partition("/")
        row = Gang(
            cluster_id=self.cluster_id, namespace=namespace, name=name[:253], queue_id=queue_ids.get(values.queue_name),
            **msgspec.structs.asdict(values),
            reason_numbers=reason_figures.document_of(gang.reason),
            reason_message=cut(gang.reason.message, MOST_MESSAGE) if gang.reason else "",
            reason_since=known.reason_since,
            figures_number=number if gang.reason else None, figures_at=at if gang.reason else None,
            waiting_since=known.waiting_since,
            admitted_at=known.admitted_at,
            started_at=known.started_at, ended_at=known.ended_at,
            seen_at=wall_at, gone_at=None, session_id=session_id,
            manifest=msgspec.to_builtins(gang.group),
        )  # fmt: skip
        known.values, known.state, known.phase = values, values.state, values.phase
        known.reason_code, known.spared_until = values.reason_code, values.spared_until
        known.figures = (gang.reason.numbers, gang.reason.message) if gang.reason else None
        known.promised, known.running = gang.promised, running
        return row, gang, timeline

    def _write_gangs(
        self,
        changed: list[tuple[Gang, Seen, list[TimelineEntry]]],
        *,
        at: dt.datetime,
        wall_at: dt.datetime,
        session_id: int,
        reclaim_of: dict[str, int],
    ) -> None:
        if not changed:
            return
        rows = Gang.objects.bulk_create(
            [row for row, _, _ in changed],
            update_conflicts=True,
            unique_fields=_KEY,
            update_fields=_WRITTEN,
            batch_size=1000,
        )
        events = []
        for row, (_, gang, timeline) in zip(rows, changed, strict=True):
            self._known[gang.values.uid].id = row.pk
            events += [
                GangEvent(
                    gang_id=row.pk, kind=entry.kind, at=entry.at or at, wall_at=wall_at, session_id=session_id,
                    reclaim_id=reclaim_of.get(gang.group.key) if entry.by_reclaim else entry.reclaim_id,
                    detail=entry.detail,
                )
                for entry in timeline
            ]  # fmt: skip
        GangEvent.objects.bulk_create(events, batch_size=2000)

    def _write_pods(self, seen: Iterable[Seen], nodes: dict[str, Node]) -> None:
        rows: list[GangPod] = []
        left: list[tuple[int, str]] = []
        for gang in seen:
            known = self._known[gang.values.uid]
            present = set()
            for pod in gang.pods:
                uid = pod.uid or pod.key
                present.add(uid)
                before, written = known.pods.get(uid, (None, None))
                if before is pod:
                    continue
                values = pod_values(pod, nodes.get(pod.node))
                known.pods[uid] = (pod, values)
                if written != values:
                    rows.append(GangPod(gang_id=known.id, **msgspec.structs.asdict(values)))
            for uid in [uid for uid in known.pods if uid not in present]:
                del known.pods[uid]
                left.append((known.id, uid))
        if left:
            GangPod.objects.filter(gang_id__in={id_ for id_, _ in left}, uid__in=[uid for _, uid in left]).delete()
        GangPod.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=("gang", "uid"), update_fields=_POD_WRITTEN, batch_size=1000
        )

    def _write_gone(self, gone: list[str], *, at: dt.datetime, wall_at: dt.datetime, session_id: int) -> None:
        if not gone:
            return
        known = [self._known.pop(uid) for uid in gone]
        ids = [one.id for one in known]
        living = (GangState.WAITING, GangState.ADMITTED, GangState.RUNNING)
        Gang.objects.filter(pk__in=ids, state__in=living).update(state=GangState.FINISHED, ended_at=at)
        Gang.objects.filter(pk__in=ids).update(
            gone_at=wall_at,
            session_id=session_id,
            needs=False,
            reason_code="",
            position=None,
            waiting_since=None,
            admitted_at=None,
        )
        Gang.objects.filter(pk__in=ids, ended_at__isnull=True, started_at__isnull=False).update(ended_at=at)
        GangPod.objects.filter(gang_id__in=ids).delete()
        GangEvent.objects.bulk_create(
            GangEvent(gang_id=id_, kind="gone", at=at, wall_at=wall_at, session_id=session_id) for id_ in ids
        )


def _as_left(known: _Known, *, at: dt.datetime, wall_at: dt.datetime) -> LeftGang:
    lost = known.state == GangState.RECLAIMED
    return LeftGang(
        owner_uid=known.owner_uid, at=at, wall_at=wall_at, ran_at=known.started_at,
        lost_at=known.waiting_since if lost else None, reclaim_id=known.reclaim_id if lost else None,
        spared_until=known.spared_until,
    )  # fmt: skip


def _of_row(gang: Gang, owner_uid: str | None) -> _Known:
    return _Known(
        id=gang.pk, key=gang.key, values=None, state=gang.state, phase=gang.phase,
        reason_code=gang.reason_code, reason_since=gang.reason_since, waiting_since=gang.waiting_since,
        admitted_at=gang.admitted_at, figures=None,
        started_at=gang.started_at, ended_at=gang.ended_at, spared_until=gang.spared_until, promised=False,
        running=gang.state == GangState.RUNNING and gang.started_at is not None, pods={}, owner_uid=owner_uid or "",
    )  # fmt: skip


def _waits_since(known: _Known, values: GangValues, at: dt.datetime) -> dt.datetime | None:
    """Not its place in the queue, which a gang keeps that was evicted."""
    if values.state == GangState.RECLAIMED and known.state != GangState.RECLAIMED:
        return at
    if not values.needs and values.state not in (GangState.WAITING, GangState.RECLAIMED):
        return None
    had_cards = known.ran or values.state == GangState.RUNNING
    return known.waiting_since or (at if had_cards else values.submitted_at)


def note_fall(
    *, cluster_id: int, key: str, reclaim_id: int, made_by: str, pods: int, at: dt.datetime, wall_at: dt.datetime,
    session_id: int,
) -> None:  # fmt: skip
    """A point in the timeline of gang ``key``: others took pods of it. One for each reclaim, which counts the pods."""
    require_transaction()
    namespace, _, name = key.partition("/")
    rows = Gang.objects.filter(cluster_id=cluster_id, namespace=namespace, name=name).order_by("-submitted_at", "-id")
    gang = rows.values_list("pk", flat=True).first()
    if gang is None:
        return
    known = GangEvent.objects.filter(gang_id=gang, kind=GangEventKind.RECLAIMED, reclaim_id=reclaim_id).first()
    if known is not None:
        known.detail = {**known.detail, "pods": known.detail.get("pods", 0) + pods}
        known.save(update_fields=["detail"])
        return
    GangEvent.objects.create(
        gang_id=gang, kind=GangEventKind.RECLAIMED, at=at, wall_at=wall_at, session_id=session_id,
        reclaim_id=reclaim_id, detail={"made_by": made_by, "pods": pods},
    )  # fmt: skip


def delete_gone(*, cluster_id: int, keep: int, limit: int) -> int:
    ids = list(
        Gang.objects.filter(cluster_id=cluster_id, gone_at__isnull=False)
        .order_by("-gone_at")
        .values_list("pk", flat=True)[keep : keep + limit]
    )
    GangPod.objects.filter(gang_id__in=ids).delete()
    GangEvent.objects.filter(gang_id__in=ids).delete()
    Gang.objects.filter(pk__in=ids).delete()
    return len(ids)


def trim_timelines(*, cluster_id: int, keep: int, limit: int = 500) -> int:
    deleted = 0
    longest = (
        GangEvent.objects.filter(gang__cluster_id=cluster_id)
        .values("gang_id")
        .order_by()
        .annotate(points=Count("id"))
        .filter(points__gt=keep)
        .values_list("gang_id", flat=True)[:limit]
    )
    for gang_id in longest:
        edge = GangEvent.objects.filter(gang_id=gang_id).order_by("-id").values_list("pk", flat=True)[keep]
        deleted += GangEvent.objects.filter(gang_id=gang_id, pk__lte=edge).exclude(kind="submitted").delete()[0]
    return deleted
