"""Written before anything is sent. A row is *decided* (surely not sent), *sending* (perhaps sent), then final."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from django.db import connection
from psycopg.types.json import Jsonb

from tidesched_web.common.locking import require_transaction
from tidesched_web.scheduling.models import Decision, DecisionKind, DecisionState


class Draft(msgspec.Struct, kw_only=True):
    """A write that is to be made. ``gang`` is the unit of all or nothing; ``target`` the object, ``uid`` its guard."""

    kind: DecisionKind
    gang: str
    target: str
    uid: str = ""
    node: str = ""
    detail: dict[str, Any] = {}
    reclaim: int | None = None  # index into the result's reclaims until the row has an id
    reclaim_id: int | None = None
    id: int = 0
    at: dt.datetime | None = None
    session_id: int = 0


class Outcome(msgspec.Struct, frozen=True):
    id: int
    state: DecisionState
    text: str = ""


_COLUMNS = (
    "id", "at", "cluster_id", "session_id", "epoch", "kind", "state", "gang", "target", "uid", "node", "detail",
    "reclaim_id", "outcome", "settled_at",
)  # fmt: skip
_TYPES = (
    "int8", "timestamptz", "int8", "int8", "int8", "varchar", "varchar", "varchar", "varchar", "varchar", "varchar",
    "jsonb", "int8", "text", "timestamptz",
)  # fmt: skip


def insert(
    drafts: Sequence[Draft],
    *,
    cluster_id: int,
    session_id: int,
    epoch: int,
    at: dt.datetime,
    state: DecisionState = DecisionState.DECIDED,
    outcome: str = "",
) -> None:
    """Its commit waits for the disk whatever the server is set to: what is sent must not be forgotten in a crash."""
    if not drafts:
        return
    require_transaction()
    settled = at if state not in (DecisionState.DECIDED, DecisionState.SENDING) else None
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")
        cursor.execute("SELECT nextval('scheduling_decision_id_seq') FROM generate_series(1, %s)", [len(drafts)])
        ids = [row[0] for row in cursor.fetchall()]
        with cursor.copy(f"COPY scheduling_decision ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_TYPES)
            for draft, id_ in zip(drafts, ids, strict=True):
                draft.id, draft.at, draft.session_id = id_, at, session_id
                copy.write_row(
                    (
                        id_, at, cluster_id, session_id, epoch, str(draft.kind), str(state), draft.gang, draft.target,
                        draft.uid, draft.node, Jsonb(draft.detail), draft.reclaim_id, outcome, settled,
                    )
                )  # fmt: skip


def take_over(drafts: Iterable[Draft], *, epoch: int) -> None:
    ids, since = _ids_and_oldest(drafts)
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduling_decision SET state = 'sending', epoch = %s "
            "WHERE id = ANY(%s) AND at >= %s AND state IN ('decided', 'sending')",
            [epoch, ids, since],
        )


def mark(drafts: Sequence[Draft], outcomes: Sequence[Outcome]) -> None:
    """Write what came of them; a row that is final already stays as it is."""
    _, since = _ids_and_oldest(drafts)
    if not outcomes:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduling_decision d SET state = v.state, outcome = v.outcome, settled_at = clock_timestamp() "
            "FROM unnest(%s::bigint[], %s::varchar[], %s::text[]) AS v(id, state, outcome) "
            "WHERE d.id = v.id AND d.at >= %s AND d.state IN ('decided', 'sending')",
            [
                [outcome.id for outcome in outcomes],
                [str(outcome.state) for outcome in outcomes],
                [outcome.text[:2000] for outcome in outcomes],
                since,
            ],
        )


def open_decisions(cluster_id: int) -> list[Decision]:
    return list(
        Decision.objects.filter(
            cluster_id=cluster_id, state__in=[DecisionState.DECIDED, DecisionState.SENDING]
        ).order_by("id")
    )


def as_draft(row: Decision) -> Draft:
    return Draft(
        kind=DecisionKind(row.kind),
        gang=row.gang,
        target=row.target,
        uid=row.uid,
        node=row.node,
        detail=row.detail,
        reclaim_id=row.reclaim_id,
        id=row.id,
        at=row.at,
        session_id=row.session_id,
    )


def done_binds(cluster_id: int, gang: str, *, sessions: Iterable[int]) -> list[Draft]:
    rows = Decision.objects.filter(
        cluster_id=cluster_id,
        gang=gang,
        session_id__in=list(sessions),
        kind=DecisionKind.BIND,
        state=DecisionState.DONE,
    )
    return [as_draft(row) for row in rows]


def any_done(drafts: Sequence[Draft]) -> bool:
    reclaims = {draft.reclaim_id for draft in drafts if draft.reclaim_id is not None}
    return Decision.objects.filter(
        session_id__in={draft.session_id for draft in drafts}, reclaim_id__in=reclaims, state=DecisionState.DONE
    ).exists()


def _ids_and_oldest(drafts: Iterable[Draft]) -> tuple[list[int], dt.datetime | None]:
    ids, oldest = [], None
    for draft in drafts:
        ids.append(draft.id)
        if oldest is None or (draft.at is not None and draft.at < oldest):
            oldest = draft.at
    return ids, oldest
