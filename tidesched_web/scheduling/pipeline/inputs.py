import msgspec
from django.db import connection

from tidesched_web.engine import bridge
from tidesched_web.engine import inputs as storage
from tidesched_web.engine.model import BadInput, Memory, Result, Snapshot
from tidesched_web.engine.version import engine_version
from tidesched_web.scheduling.models import Session, SessionInput

# A full snapshot at least this often; earlier where the difference is no longer small.
FULL_EVERY = 60
SMALL = 0.4


class InputWriter:
    def __init__(self, *, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._base: Snapshot | None = None
        self._base_id: int | None = None
        self._base_size = 0
        self._since = 0

    def write(self, session_id: int, snapshot: Snapshot, memory: Memory | None) -> int:
        """By the session's id: rows that refer to each other would stay in memory until garbage is collected."""
        format_, payload, base_id = self._encode(snapshot)
        stored = bridge.encode_memory(memory) if memory is not None else b""
        row = SessionInput.objects.create(
            cluster_id=self.cluster_id,
            session_id=session_id,
            base_id=base_id,
            format=format_,
            payload=payload,
            memory=stored,
            size=len(payload) + len(stored),
        )
        if base_id is None:
            self._base, self._base_id, self._base_size, self._since = snapshot, row.pk, len(payload), 0
        else:
            self._since += 1
        return row.pk

    def _encode(self, snapshot: Snapshot) -> tuple[str, bytes, int | None]:
        if self._base is not None and self._since < FULL_EVERY and self._base_is_there():
            payload = storage.encode_difference(snapshot, self._base)
            if len(payload) <= SMALL * self._base_size:
                return storage.DIFFERENCE, payload, self._base_id
        return storage.FULL, storage.encode_full(snapshot), None

    def _base_is_there(self) -> bool:
        """Retention, or a transaction that was rolled back, may have taken it."""
        return self._base_id is not None and SessionInput.objects.filter(pk=self._base_id).exists()


def read(session: Session) -> tuple[Snapshot, Memory | None]:
    row = SessionInput.objects.select_related("base").filter(session=session).first()
    if row is None:
        raise BadInput("no_session_input", f"the input of session {session.number} is not kept any more")
    base = storage.decode(row.base.format, bytes(row.base.payload)) if row.base is not None else None
    snapshot = storage.decode(row.format, bytes(row.payload), base)
    return snapshot, bridge.decode_memory(bytes(row.memory)) if row.memory else None


class Replay(msgspec.Struct, frozen=True):
    expected: str
    found: str
    recorded_engine: str
    engine: str
    result: Result

    @property
    def same(self) -> bool:
        return self.expected == self.found


def replay(session: Session) -> Replay:
    if session.policy is None:
        raise BadInput("no_policy", f"the policy of session {session.number} is not kept any more")
    snapshot, memory = read(session)
    policy = bridge.read_policy(session.policy.text)
    result, _ = bridge.decide(snapshot, policy, now=session.now.timestamp(), memory=memory)
    return Replay(session.result_hash, bridge.result_hash(result), session.engine_version, engine_version(), result)


_THIN = """
DELETE FROM scheduling_sessioninput i USING scheduling_session s
WHERE i.session_id = s.id AND i.cluster_id = %(cluster)s AND i.base_id IS NOT NULL AND i.id < %(edge)s
  AND NOT EXISTS (SELECT 1 FROM scheduling_decision d WHERE d.session_id = s.id AND d.kind IN ('bind', 'evict'))
"""


def total_bytes(cluster_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(size), 0) FROM scheduling_sessioninput WHERE cluster_id = %s", [cluster_id])
        return int(cursor.fetchone()[0])


def shrink(cluster_id: int, *, budget: int) -> int:
    """Idle sessions of the older half, then the oldest full snapshots with their differences, never the newest."""
    before = SessionInput.objects.filter(cluster_id=cluster_id).count()
    if total_bytes(cluster_id) > budget:
        middle = SessionInput.objects.filter(cluster_id=cluster_id).order_by("-id")[before // 2 : before // 2 + 1]
        for row in middle.only("pk"):
            with connection.cursor() as cursor:
                cursor.execute(_THIN, {"cluster": cluster_id, "edge": row.pk})
    for full in list(_full_ids(cluster_id))[:-1]:
        if total_bytes(cluster_id) <= budget:
            break
        SessionInput.objects.filter(base_id=full).delete()
        SessionInput.objects.filter(pk=full).delete()
    return before - SessionInput.objects.filter(cluster_id=cluster_id).count()


def _full_ids(cluster_id: int) -> list[int]:
    rows = SessionInput.objects.filter(cluster_id=cluster_id, base__isnull=True).order_by("id")
    return list(rows.values_list("pk", flat=True))
