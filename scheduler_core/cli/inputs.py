"""What one session is made of, read from the files that the options name."""

import argparse
import json
import sys

import msgspec

from scheduler_core.cli.files import read_bytes, read_memory, shown
from scheduler_core.model.errors import BadInput
from scheduler_core.model.memory import Memory
from scheduler_core.model.policy import Policy
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.kubernetes import read_snapshot
from scheduler_core.serde.kubernetes.builder import DEFAULT_SCHEDULERS
from scheduler_core.serde.policy import parse_policy


class Inputs(msgspec.Struct, frozen=True):
    snapshot: Snapshot
    policy: Policy
    now: float
    memory: Memory | None


def read_inputs(options: argparse.Namespace) -> Inputs:
    """Read policy, snapshot and memory. Raises BadInput: with file and place."""
    if options.snapshot == options.conf == "-":
        raise BadInput("usage", "--snapshot and --conf cannot both be read from stdin")
    policy = parse_policy(read_bytes(options.conf), shown(options.conf))
    schedulers = tuple(options.scheduler_name or _schedulers(policy))
    snapshot = read_snapshot(read_bytes(options.snapshot), shown(options.snapshot), schedulers)
    memory = read_memory(options.memory) if options.memory else None
    return Inputs(snapshot, policy, snapshot.latest if options.now is None else options.now, memory)


def _schedulers(policy: Policy) -> tuple[str, ...]:
    """The usual names, and those that the policy has profiles for."""
    return tuple(dict.fromkeys((*DEFAULT_SCHEDULERS, *(profile.scheduler for profile in policy.profiles))))


def remark(inputs: Inputs, *, as_json: bool) -> None:
    """Say on stderr what of the input was left aside."""
    passed_over, warnings = inputs.snapshot.passed_over, [*inputs.policy.warnings, *inputs.snapshot.warnings]
    if as_json:
        if passed_over or warnings:
            remarks = {"passed_over": passed_over, "warnings": warnings}
            print(json.dumps(remarks, ensure_ascii=False, sort_keys=True), file=sys.stderr)
        return
    if passed_over:
        print(f"passed over: {', '.join(f'{kind} {count}' for kind, count in passed_over.items())}", file=sys.stderr)
    for finding in inputs.snapshot.findings:
        print(f"{finding.severity}: {finding.object}: {finding.path}: {finding.message}", file=sys.stderr)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
