"""Generated files must be what their generators write now: `python -m tests.checks`, or `--write` to write them.

Part of `make check`, as are the line budget and that no test of the gate asks how long something took. It runs
against servers of its own, since migrations and schema ask for a database.
"""

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.fernet import Fernet

from tests import elapsed_time, line_budget, own_servers
from tests.disposable_servers import DisposableServers

ROOT = Path(__file__).resolve().parent.parent

# file -> the command that prints it
GENERATED = {
    "openapi.yaml": ["manage.py", "spectacular", "--validate", "--fail-on-warn"],
    "docs/plugins.md": ["-m", "tests.plugin_page"],
    "docs/permissions.md": ["-m", "tidesched_web.clusters.kubernetes.rbac", "page"],
} | {
    file: ["-m", "tidesched_web.clusters.kubernetes.rbac", form, mode]
    for mode in ("observe", "quota", "schedule")
    for file, form in (
        (f"deploy/rbac/{mode}.yaml", "manifests"),
        (f"deploy/helm/tidesched/rbac/{mode}.yaml", "chart"),
    )
}


def main(arguments: list[str]) -> int:
    """Check or write; return the exit status."""
    write = arguments == ["--write"]
    with tempfile.TemporaryDirectory(prefix="tidesched-checks-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        servers = own_servers.start(folder)
        try:
            environment = _environment(folder, servers)
            wrong = (
                []
                if write
                else [*line_budget.faults(), *elapsed_time.faults_of_all(), *_missing_migrations(environment)]
            )
            wrong += [] if write else _deployment_warnings(environment)
            for file, command in GENERATED.items():
                wrong += _generate(file, command, environment, write=write)
        finally:
            servers.stop()
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


def _environment(folder: Path, servers: DisposableServers) -> dict[str, str]:
    return os.environ | {
        "DATA_DIR": str(folder),
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "TIDESCHED_KEYS": Fernet.generate_key().decode(),
    }


def _missing_migrations(environment: dict[str, str]) -> list[str]:
    done = _python(["manage.py", "makemigrations", "--check", "--dry-run"], environment)
    return [] if done.returncode == 0 else [f"the models have changes without a migration:\n{done.stdout}{done.stderr}"]


def _deployment_warnings(environment: dict[str, str]) -> list[str]:
    behind_https = environment | {"PUBLIC_URL": "https://tidesched.example", "TIDESCHED_EMBEDDED": "0"}
    done = _python(["manage.py", "check", "--deploy", "--fail-level", "WARNING"], behind_https)
    return [] if done.returncode == 0 else [f"Django's deployment checks warn:\n{done.stderr}"]


def _generate(file: str, command: list[str], environment: dict[str, str], *, write: bool) -> list[str]:
    done = _python(command, environment)
    if done.returncode != 0:
        return [f"{' '.join(command)} failed:\n{done.stderr}"]
    path = ROOT / file
    if write:
        path.write_text(done.stdout, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != done.stdout:
        return [f"{file} is not what `{' '.join(command)}` writes: run `make docs` and commit it"]
    return []


def _python(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
