"""`python -m tests.proofs [NAME …]`: the suites that take too long for the gate; all of them without a name.

Each writes its output to `test-results/proof-NAME.log`, and what pytest found to `test-results/proof-NAME.xml`.
`make proof-NAME` runs one. CONTRIBUTING.md says which changes ask for which.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "test-results"


class Proof(NamedTuple):
    """Arguments of pytest, what is run before (modules with arguments) or instead, and more environment."""

    pytest: str = ""
    modules: tuple[str, ...] = ()
    environment: dict[str, str] = {}


_TOGETHER = "-n 2 --dist loadfile"
_API_SERVER = "tests.kube build"
PROOFS = {
    "crew": Proof(modules=(f"tests.crew {os.environ.get('RUN', 'calm')} --minutes {os.environ.get('MINUTES', '10')}",)),
    "crashes": Proof(f"-m proof {_TOGETHER} tests/cluster/test_crash_matrix.py"),
    "hangs": Proof("-m proof tests/cluster/test_hangs.py tests/web/test_dead_jobs.py"),
    "crowd": Proof("tests/web/front/test_crowd.py"),
    "kills": Proof("tests/web/test_embedded_up.py tests/web/test_embedded_supervisor.py"),
    "kubernetes": Proof(f"-m 'kubernetes and not proof' {_TOGETHER} tests/cluster tests/kube", (_API_SERVER,)),
    "refusals": Proof("-s -m 'kubernetes and proof' tests/kube", (_API_SERVER,)),
    "volcano": Proof("-m volcano tests/volcano", (_API_SERVER, "tests.volcano.build")),
    "signin": Proof("-m proof tests/signin", ("tests.signin.dex",)),
    "rest": Proof(
        f"{_TOGETHER} tests/api/test_conformance.py tests/api/test_hostile_bodies.py tests/api/test_hostile_forms.py"
        " tests/web/front/test_chunked_bodies.py",
        environment={"REST_EXAMPLES": os.environ.get("REST_EXAMPLES", "10")},
    ),
    "pages": Proof(f"-m proof {_TOGETHER} tests/browser"),
    "sessions": Proof(
        f"-m 'not proof' {_TOGETHER} tests/properties",
        environment={"RANDOM_SESSIONS": "200", "RANDOM_KUBECONFIGS": "3000"},
    ),
    "broken": Proof(f"{_TOGETHER} tests/properties/test_broken.py", environment={"BROKEN_SNAPSHOTS": "2000"}),
    "kernels": Proof("-m proof tests/properties/test_compiled.py"),
    "metrics": Proof("tests/metrics"),
    "audit": Proof("--timeout 1200 tests/web/test_audit_tampering.py", environment={"AUDIT_COPIES": "1000"}),
    "bench": Proof(modules=("bench --smallest",)),
}


def main(names: list[str]) -> int:
    """Run them one after the other, whatever fails; 1 where one did."""
    if unknown := set(names) - PROOFS.keys():
        sys.stderr.write(f"there is no proof {min(unknown)}; known: {', '.join(PROOFS)}\n")
        return 2
    RESULTS.mkdir(exist_ok=True)
    failed = []
    for name in names or PROOFS:
        begun = time.monotonic()
        status = _run(name, PROOFS[name])
        print(f"proof-{name}: {'failed' if status else 'holds'} ({time.monotonic() - begun:.0f} s)", flush=True)
        if status:
            failed.append(name)
    return 1 if failed else 0


def _run(name: str, proof: Proof) -> int:
    commands = [f"-m {module}" for module in proof.modules]
    if proof.pytest:
        commands.append(f"-m pytest --junitxml {RESULTS}/proof-{name}.xml {proof.pytest}")
    # What a proof lacks fails it: it was asked for by name.
    environment = os.environ | proof.environment | {"CI": "true"}
    script = " && ".join(f"{sys.executable} {command}" for command in commands)
    piped = f"set -o pipefail; ({script}) 2>&1 | tee {RESULTS}/proof-{name}.log"
    return subprocess.run(["bash", "-c", piped], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
