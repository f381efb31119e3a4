"""``replay``: reads policy and queues, and hands over to the simulator."""

import argparse

from scheduler_core.cli.files import read_bytes, shown
from scheduler_core.cli.inputs import Inputs, remark
from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import read_snapshot
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator import replay


def main(options: argparse.Namespace) -> int:
    """Play the trace; ``options`` gets ``policy`` and ``queue_objects`` beside what was given. Raises BadInput:
    anything in the input that cannot be used."""
    if options.conf is None:
        options.policy = parse_policy(FOUNDING_POLICY, "the founding policy")
    else:
        options.policy = parse_policy(read_bytes(options.conf), shown(options.conf))
    options.queue_objects = None
    if options.queues is not None:
        snapshot = read_snapshot(read_bytes(options.queues), shown(options.queues))
        remark(Inputs(snapshot, options.policy, snapshot.latest, None), as_json=False)
        options.queue_objects = tuple(queue for queue in snapshot.queues if not queue.made)
        if not options.queue_objects:
            raise BadInput("empty_snapshot", "the file holds no Queue", file=shown(options.queues))
    return replay.main(options)
