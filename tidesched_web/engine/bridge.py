import hashlib
import time
from typing import Any

import msgspec

from scheduler_core import Workspace, run_session
from scheduler_core.serde.kubernetes import SnapshotBuilder
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.result import dump, result_to_json
from tidesched_web.engine.extender_client import HttpExtenderClient, wrong_addresses
from tidesched_web.engine.model import BadInput, Memory, Policy, Result, Snapshot

# Sessions of one cluster differ by what they see, never by chance; a replay uses the same seed.
SEED = 0

__all__ = [
    "SEED",
    "SnapshotBuilder",
    "Workspace",
    "decide",
    "decode_memory",
    "encode_memory",
    "policy_problem",
    "read_policy",
    "result_document",
    "result_hash",
]


def read_policy(text: str) -> Policy:
    return parse_policy(text)


def policy_problem(text: str) -> dict[str, Any] | None:
    try:
        wrong = next(wrong_addresses(parse_policy(text)), None)
    except BadInput as error:
        wrong = error
    return dict(wrong.to_json()["error"]) if wrong is not None else None


def decide(
    snapshot: Snapshot,
    policy: Policy,
    *,
    now: float,
    memory: Memory | None,
    workspace: Workspace | None = None,
    extenders: HttpExtenderClient | None = None,
) -> tuple[Result, Memory]:
    """Same input, same result, byte for byte; a workspace kept between sessions only makes it faster."""
    return run_session(
        snapshot,
        policy,
        now=now,
        seed=SEED,
        memory=memory,
        workspace=workspace,
        timer=time.perf_counter,
        extenders=extenders or HttpExtenderClient(),
    )


def result_hash(result: Result) -> str:
    return hashlib.sha256(dump(result)).hexdigest()


def result_document(result: Result) -> dict[str, Any]:
    return result_to_json(result)


def encode_memory(memory: Memory) -> bytes:
    return msgspec.msgpack.encode(memory, order="deterministic")


def decode_memory(payload: bytes) -> Memory:
    try:
        return msgspec.msgpack.decode(payload, type=Memory)
    except msgspec.MsgspecError as error:
        raise BadInput("bad_memory", f"stored memory cannot be read: {error}") from error
