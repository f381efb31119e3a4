"""``run``: one session over a snapshot."""

import argparse
import sys
import time

from scheduler_core.cli.files import dump_memory, write_bytes
from scheduler_core.cli.inputs import read_inputs, remark
from scheduler_core.cli.table import print_result
from scheduler_core.scheduler import run_session
from scheduler_core.serde import result as result_document

# A remedy is shown by sessions of its own, up to a few dozen: worth seconds, not minutes.
EXPLAINED_PODS = 5_000


def main(options: argparse.Namespace) -> int:
    """Decide, and write the result to stdout."""
    inputs = read_inputs(options)
    result, after = run_session(
        inputs.snapshot,
        inputs.policy,
        now=inputs.now,
        seed=options.seed,
        memory=inputs.memory,
        # The engine has no clock of its own.
        timer=time.perf_counter if options.timings else None,
        check=True,
        explain=len(inputs.snapshot.pods) <= EXPLAINED_PODS,
    )
    if options.memory_out:
        write_bytes(options.memory_out, dump_memory(after))
    remark(inputs, as_json=options.output == "json")
    if options.output == "json":
        sys.stdout.buffer.write(result_document.dump(result, timings=options.timings))
        sys.stdout.buffer.flush()
    else:
        print_result(result, timings=options.timings)
    return 0
