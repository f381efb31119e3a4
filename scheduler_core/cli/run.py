"""``run``: one session over a snapshot."""

from __future__ import annotations

import argparse
import json
import sys
import time

from scheduler_core.cli.files import dump_memory, read_bytes, read_memory, shown, write_bytes
from scheduler_core.cli.table import print_result
from scheduler_core.model.errors import BadInput
from scheduler_core.model.policy import Policy
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.scheduler import run_session
from scheduler_core.serde import result as result_document
from scheduler_core.serde.kubernetes import read_snapshot
from scheduler_core.serde.kubernetes.builder import DEFAULT_SCHEDULERS
from scheduler_core.serde.policy import parse_policy

# A remedy is shown by sessions of its own, up to a few dozen: worth seconds, not minutes.
EXPLAINED_PODS = 5_000


def main(options: argparse.Namespace) -> int:
    """Decide, and write the result to stdout."""
    if options.snapshot == options.conf == "-":
        raise BadInput("usage", "--snapshot and --conf cannot both be read from stdin")
    policy = parse_policy(read_bytes(options.conf), shown(options.conf))
    schedulers = tuple(options.scheduler_name or DEFAULT_SCHEDULERS)
    snapshot = read_snapshot(read_bytes(options.snapshot), shown(options.snapshot), schedulers)
    memory = read_memory(options.memory) if options.memory else None
    now = snapshot.latest if options.now is None else options.now
    result, after = run_session(
        snapshot,
        policy,
        now=now,
        seed=options.seed,
        memory=memory,
        # The engine has no clock of its own.
        timer=time.perf_counter if options.timings else None,
        check=True,
        explain=len(snapshot.pods) <= EXPLAINED_PODS,
    )
    if options.memory_out:
        write_bytes(options.memory_out, dump_memory(after))
    remark(snapshot, policy, as_json=options.output == "json")
    if options.output == "json":
        sys.stdout.buffer.write(result_document.dump(result, timings=options.timings))
        sys.stdout.buffer.flush()
    else:
        print_result(result, timings=options.timings)
    return 0


def remark(snapshot: Snapshot, policy: Policy, *, as_json: bool) -> None:
    """Say on stderr what of the input was left aside."""
    warnings = [*policy.warnings, *snapshot.warnings]
    if as_json:
        if snapshot.passed_over or warnings:
            remarks = {"passed_over": snapshot.passed_over, "warnings": warnings}
            print(json.dumps(remarks, ensure_ascii=False, sort_keys=True), file=sys.stderr)
        return
    if snapshot.passed_over:
        kinds = ", ".join(f"{kind} {count}" for kind, count in snapshot.passed_over.items())
        print(f"passed over: {kinds}", file=sys.stderr)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
