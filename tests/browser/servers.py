"""A web process of its own over a database of its own, filled with the story of `tests.web.console.world`.

`python -m tests.browser.servers fill` is run by the fixture under that database's address.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

from tests import own_servers
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))


def with_redis_number(url: str, number: int) -> str:
    """The same server, another numbered database."""
    return f"{url.partition('?')[0]}?db={number}"


@contextlib.contextmanager
def database(url: str) -> Iterator[str]:
    """A fresh database with the schema on the server of `url`; it is dropped afterwards."""
    import psycopg

    name = f"browser_{secrets.token_hex(4)}"
    with psycopg.connect(with_database(url, "postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{own_servers.TEMPLATE}"')
    try:
        yield with_database(url, name)
    finally:
        with psycopg.connect(with_database(url, "postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def until_it_answers(address: str, process: subprocess.Popen[bytes], log: Path, patience: float) -> None:
    """Wait for a status 200; fail with the end of the log where the process ends or never answers."""

    def answers() -> bool:
        assert process.poll() is None, f"it has ended:\n{log.read_text()[-4000:]}"
        with contextlib.suppress(OSError), urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    until(answers, patience, story=lambda: log.read_text()[-4000:])


@contextlib.contextmanager
def web(environment: dict[str, str], folder: Path, *, story: str) -> Iterator[str]:
    """Fill with a story and serve; yields the address."""
    env = os.environ | environment
    subprocess.run([sys.executable, "-m", "tests.browser.servers", story], cwd=ROOT, env=env, check=True, timeout=300)
    port = free_port()
    command = [sys.executable, "-m", "tidesched_web.embedded.web", "--port", str(port)]
    with (folder / f"web-{port}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        until_it_answers(f"{address}/healthz", process, folder / f"web-{port}.log", 180)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _tenant_admin(name: str, tenant: str) -> None:
    """An account beside the story's: the admin of a tenant."""
    from tests.passwords import PASSWORD
    from tidesched_web.accounts.models import Tenant
    from tidesched_web.accounts.services import create_user, set_membership

    user = create_user(username=name, password=PASSWORD, actor="tests")
    set_membership(user=user, tenant=Tenant.objects.get(slug=tenant), role="admin", actor="tests")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
    import django

    django.setup()
    from tests.web.console import world, world_connections, world_governance

    if sys.argv[1] == "crowd":
        from tests.web.front import crowd

        crowd.fill()
    elif sys.argv[1] == "full":
        made = world.full()
        _tenant_admin("lead", "search")
        _tenant_admin("keeper", "search")  # of a passkey
        world_governance.answered(made)
        world_connections.tested(made)
    else:
        world.bare()
