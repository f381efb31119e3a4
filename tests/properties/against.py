"""The engine of this tree against the one of another: ``python -m tests.properties.against WORKTREE 0 10000``.

Each seed is a cluster, a policy of drawn plugins and some sessions one after the other; the bytes of their results and
what the memory holds in the end are compared. Prints each seed that is decided otherwise; exit status 1 then.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve()
STEP = 30


def main() -> int:
    """Seeds from the first to before the last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worktree", type=Path)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("last", type=int, nargs="?", default=1000)
    given = parser.parse_args()
    engines = [_Engine(given.worktree.resolve()), _Engine(SCRIPT.parents[2])]
    wrong, held, began = [], Counter[str](), time.monotonic()
    for seed in range(given.first, given.last):
        drawn = draw(seed)
        for engine in engines:
            engine.ask(drawn)
        theirs, ours = (engine.answer() for engine in engines)
        held.update(ours.pop("held"))
        held["sessions"] += len(ours["results"])
        theirs.pop("held")
        if ours != theirs:
            wrong.append(seed)
            print(f"seed {seed}: {_first_difference(theirs, ours)}", flush=True)
        if (seed + 1 - given.first) % 500 == 0:
            print(f"{seed + 1}: {len(wrong)} differ, {time.monotonic() - began:.0f} s", flush=True)
    print(", ".join(f"{what} {count}" for what, count in sorted(held.items())))
    print(f"{len(wrong)} decided otherwise: {wrong[:50]}")
    return 1 if wrong else 0


class _Engine:
    """A process with the engine of one tree."""

    def __init__(self, tree: Path) -> None:
        command = [sys.executable, "-c", f"import runpy; runpy.run_path({str(SCRIPT)!r}, run_name='engine')"]
        # Sets are walked in the same order in both processes.
        self._process = subprocess.Popen(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._to, self._from = self._process.stdin, self._process.stdout

    def ask(self, drawn: dict[str, Any]) -> None:
        self._to.write(json.dumps(drawn) + "\n")
        self._to.flush()

    def answer(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._from.readline())
        return said


def draw(seed: int) -> dict[str, Any]:
    """What a session is given, as JSON; now and then many nodes, or Volcano's ways."""
    from tests.properties.clusters import crowd, random_cluster
    from tests.properties.extras import with_extras
    from tests.properties.policies import random_policy

    rng = random.Random(seed)
    objects, options, now = random_cluster(rng)
    objects = crowd(rng, with_extras(rng, objects))
    if rng.random() < 0.2:
        objects = _on_more_nodes(rng, objects)
    policy = json.loads(random_policy(rng, options))
    if rng.random() < 0.15:
        policy["compatibility"] = "volcano"
    return {
        "objects": objects,
        "policy": json.dumps(policy),
        "now": now,
        "sessions": rng.choice((1, 2, 3)),
        "explain": rng.random() < 0.2,
    }


def _on_more_nodes(rng: random.Random, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies of the nodes, more than one block of them, with other amounts here and there."""
    nodes = [body for body in objects if body["kind"] == "Node"]
    found = []
    for number in range(rng.choice((20, 70, 150))):
        body = copy.deepcopy(rng.choice(nodes))
        body["metadata"]["name"] = f"more-{number}"
        body["metadata"].setdefault("annotations", {}).pop("volcano.sh/node-vgpu-register", None)
        if rng.random() < 0.3:
            body["status"]["allocatable"]["cpu"] = rng.choice((2, 8, 33))
        found.append(body)
    return [*objects, *found]


def _first_difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Where the two begin to differ."""
    if "error" in ours or "error" in theirs:
        return f"error {theirs.get('error', 'none')!r} became {ours.get('error', 'none')!r}"
    for number, pair in enumerate(zip(theirs["results"], ours["results"], strict=True), start=1):
        before, after = map(json.loads, pair)
        for part in before:
            if before[part] != after[part]:
                gone = [entry for entry in before[part] if entry not in after[part]]
                new = [entry for entry in after[part] if entry not in before[part]]
                return f"session {number}, {part}: {str(gone)[:300]} became {str(new)[:300]}"
    return "memory"


def serve() -> None:
    """Decide what comes by stdin with the engine of the current folder."""
    sys.path.insert(0, str(Path.cwd()))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_decided(**json.loads(line))) + "\n")
        sys.stdout.flush()


def _decided(objects: list[Any], policy: str, now: float, sessions: int, explain: bool) -> dict[str, Any]:
    from scheduler_core import Workspace, run_session
    from scheduler_core.model.memory import Memory
    from scheduler_core.serde.policy import parse_policy
    from scheduler_core.serde.result import dump
    from tests import builders as b
    from tests.properties.drawn import Service
    from tests.reference.aftermath import carry_out

    results: list[str] = []
    held: dict[str, int] = {"binds": 0, "evictions": 0, "reasons": 0}
    memory, workspace = Memory(), Workspace()
    try:
        parsed = parse_policy(policy)
        for number in range(sessions):
            at = now + STEP * number
            result, memory = run_session(
                b.snapshot(objects),
                parsed,
                now=at,
                memory=memory,
                workspace=workspace,
                extenders=Service(),
                explain=explain,
                check=True,
            )
            results.append(dump(result).decode())
            for kind in held:
                held[kind] += len(getattr(result, kind))
            objects = carry_out(objects, result, at - b.now(0))
    except Exception as error:  # noqa: BLE001 the other engine has to end so too
        return {"results": results, "error": f"{type(error).__name__}: {error}", "memory": "", "held": held}
    return {"results": results, "memory": repr(memory), "held": held}


if __name__ == "engine":
    serve()
elif __name__ == "__main__":
    sys.exit(main())
