"""``explain``: why one gang waits, with every node and every possible victim."""

import argparse
import difflib
import sys
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from scheduler_core.cli.inputs import read_inputs, remark
from scheduler_core.cli.table import PIPE_WIDTH
from scheduler_core.model.errors import BadInput
from scheduler_core.model.explanation import Explanation, MemberCandidates, NodeCandidate
from scheduler_core.model.resources import MIB, in_mib
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.scheduler import run_session
from scheduler_core.serde.result import reason_to_json

# So many nodes and victims are shown as a table; JSON has all.
_SHOWN = 20
# So many gangs are named where none is near.
_NAMED = 10


def main(options: argparse.Namespace) -> int:
    """Run a session and print all that it knows about the gang."""
    inputs = read_inputs(options)
    name = _gang(inputs.snapshot, options.gang)
    found: dict[str, Explanation] = {}
    run_session(
        inputs.snapshot, inputs.policy, now=inputs.now, seed=options.seed, memory=inputs.memory, check=True,
        explain=(name,), explain_to=found,
    )  # fmt: skip
    remark(inputs, as_json=options.output == "json")
    if name not in found:
        hint = "give the policy tiers, or a profile of its scheduler"
        raise BadInput("no_profile", f"no profile of the policy decides about {name}", value=name, hint=hint)
    if options.output == "json":
        sys.stdout.buffer.write(
            orjson.dumps(_document(found[name]), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        )
        sys.stdout.buffer.flush()
    else:
        _print(found[name])
    return 0


def _gang(snapshot: Snapshot, given: str) -> str:
    """The full name of the gang. Raises BadInput: ``unknown_gang``, ``ambiguous_gang``."""
    names = [group.key for group in snapshot.pod_groups]
    if given in names:
        return given
    same = [name for name in names if name.partition("/")[2] == given]
    # Else by the workload that owns it: its PodGroup has a name that a controller made.
    owned = [
        group for group in snapshot.pod_groups if given in (group.owner_name, f"{group.namespace}/{group.owner_name}")
    ]
    same = same or [group.key for group in owned]
    if len(same) > 1:
        hint = "namespace/name of its PodGroup"
        raise BadInput("ambiguous_gang", f"{given} is {' and '.join(same)}", value=given, hint=hint)
    if same:
        return same[0]
    raise BadInput("unknown_gang", f"there is no gang {given!r}", value=given, hint=_nearest(given, snapshot))


def _nearest(given: str, snapshot: Snapshot) -> str:
    """The gang that was meant: by its whole name, else by the part behind the namespace; or by its workload."""
    names = [group.key for group in snapshot.pod_groups]
    known: dict[str, str] = {}
    for group in sorted(snapshot.pod_groups, key=lambda group: group.key, reverse=True):
        if group.owner_name:
            owner = f"{group.namespace}/{group.owner_name}"
            known[group.owner_name] = known[owner] = f"{owner!r}, the {group.owner_kind} of PodGroup {group.key!r}"
    for name in sorted(names, reverse=True):
        known[name.partition("/")[2]] = known[name] = repr(name)
    near = difflib.get_close_matches(given, known, n=1) or difflib.get_close_matches(
        given.rpartition("/")[2], known, n=1
    )
    if near:
        return f"did you mean {known[near[0]]}?"
    if not names:
        return "the snapshot has no gang; does it hold pods, or PodGroups and Jobs?"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"there are {', '.join(sorted(names)[:_NAMED])}{more}"


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "podgroup": explanation.podgroup,
        "queue": explanation.queue,
        "phase": explanation.phase,
        "decision": explanation.decision,
        "reason": None if explanation.reason is None else reason_to_json(explanation.reason),
        "quota": explanation.quota or None,
        "members": [
            {"pods": list(member.pods), "nodes": [_node(node) for node in member.nodes]}
            for member in explanation.members
        ],
        "victims": [{"gang": v.gang, "queue": v.queue, "rule": v.rule} for v in explanation.victims],
    }


def _node(node: NodeCandidate) -> dict[str, Any]:
    if node.fits:
        return {"node": node.node, "fits": node.fits, "score": round(node.score, 6)}
    shown: dict[str, Any] = {"node": node.node, "fits": None, "refusal": node.refusal}
    if node.resource:
        shown["resource"] = node.resource
    if node.requested:
        shown |= {"requested": node.requested, "free": node.free}
    return shown


def _print(explanation: Explanation) -> None:
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH, color_system=None)
    console.print(f"{explanation.podgroup} in queue {explanation.queue}: {explanation.phase}, {explanation.decision}")
    if explanation.reason is None:
        console.print("It waits for nothing.")
    else:
        console.print(f"{explanation.reason.code.value}: {explanation.reason.message}")
        if explanation.reason.remedy is not None:
            remedy = reason_to_json(explanation.reason)["remedy"]
            console.print("What would help: " + ", ".join(f"{k} {v}" for k, v in remedy.items() if v is not None))
    if explanation.quota:
        console.print(f"Quota: {explanation.quota}")
    for member in explanation.members:
        _print_nodes(console, member)
    if explanation.victims:
        table = Table("gang", "queue", "why it stays", title="Who could have made room", title_justify="left")
        for victim in explanation.victims[:_SHOWN]:
            table.add_row(victim.gang, victim.queue, victim.rule)
        console.print(table)
        _rest(console, len(explanation.victims))


def _print_nodes(console: Console, member: MemberCandidates) -> None:
    fitting = [node for node in member.nodes if node.fits]
    title = f"{member.pods[0]}" + (f" and {len(member.pods) - 1} like it" if len(member.pods) > 1 else "")
    table = Table("node", "fits", "why not", "asks for", "free", "score", title=title, title_justify="left")
    others = [node for node in member.nodes if not node.fits]
    for node in [*fitting, *others][:_SHOWN]:
        amounts = [_amount(node.resource, amount) if node.requested else "" for amount in (node.requested, node.free)]
        table.add_row(node.node, node.fits, node.refusal, *amounts, f"{node.score:.2f}" if node.fits else "")
    console.print(table)
    _rest(console, len(member.nodes))
    counts: dict[str, int] = {}
    for node in others:
        counts[node.refusal] = counts.get(node.refusal, 0) + 1
    said = ", ".join(f"{count} {refusal}" for refusal, count in sorted(counts.items()))
    console.print(f"{len(fitting)} of {len(member.nodes)} nodes fit" + (f"; {said}" if said else ""))


def _amount(resource: str, amount: float) -> str:
    """As people write it: memory and huge pages with their unit."""
    if in_mib(resource):
        return f"{amount / MIB:g}Mi"
    return f"{amount:g}"


def _rest(console: Console, count: int) -> None:
    if count > _SHOWN:
        console.print(f"… and {count - _SHOWN} more; --output json has all")
