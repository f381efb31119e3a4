"""A real PostgreSQL and a real Valkey for each process that runs tests, started before Django reads its settings."""

import atexit
import gc
import os
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from cryptography.fernet import Fernet
from django.conf import settings as configured
from django.db import connections
from hypothesis import HealthCheck, settings

from tests import own_servers

# Wall time is no test: on a busy machine a single draw may take seconds.
settings.register_profile("patient", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# All users may enter, since PostgreSQL may run as another one; no other may list it.
_FOLDER = Path(tempfile.mkdtemp(prefix="tidesched-tests-"))
_FOLDER.chmod(0o711)


def _start() -> None:
    atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
    os.environ["DATA_DIR"] = str(_FOLDER)
    os.environ["TIDESCHED_EMBEDDED"] = "0"
    os.environ["DEMO"] = "0"
    os.environ["ALLOWED_HOSTS"] = "*"
    os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
    os.environ.setdefault("TIDESCHED_KEYS", Fernet.generate_key().decode())
    if _hands_out():
        return
    servers = own_servers.start(_FOLDER)
    atexit.register(servers.stop)
    os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = servers.database_url, servers.redis_url


def _hands_out() -> bool:
    """Whether this process only hands tests out to workers, which have servers of their own."""
    asked = any(argument.startswith(("-n", "--numprocesses")) for argument in sys.argv)
    return asked and "PYTEST_XDIST_WORKER" not in os.environ


if not _hands_out():
    gc.disable()
_start()
# Only now: pytest-django would read the settings before this file if its configuration named them.
os.environ["DJANGO_SETTINGS_MODULE"] = "tidesched_web.settings"
django.setup()
# And not left behind: a worker of pytest-xdist that inherited it would read the settings before this file as well.
del os.environ["DJANGO_SETTINGS_MODULE"]
connections["default"].settings_dict["TEST"]["TEMPLATE"] = own_servers.TEMPLATE
# Each client of a test begins with middleware of its own, which would list the static files first.
configured.WHITENOISE_AUTOREFRESH = True


INSTALLATIONS = {"test_embedded_up", "test_live_demo"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole installations first, since they take longest and rewrite what pages are served from; the browser suites
    last: Playwright keeps an event loop running, which no other test could bear."""
    items.sort(key=lambda item: ("browser" in item.path.parts, item.path.stem not in INSTALLATIONS))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: to walk it again and again is a tenth of the suites' time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


# Django's own: made with the schema, and the same in each test.
_KEPT_TABLES = {"django_content_type", "auth_permission"}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """After a test with transactions of its own rows are deleted: to empty a hundred tables as files takes longer.

    In the end the connections are named that keep the database from being dropped.
    """
    from django.contrib.contenttypes.management import create_contenttypes
    from django.db import connection
    from django.db.models.signals import post_migrate

    def deletes(_style: object, tables: list[str], **_options: bool) -> list[str]:
        names = [name for name in tables if name not in _KEPT_TABLES]
        return [
            "SET session_replication_role = replica",
            *(f"DELETE FROM {connection.ops.quote_name(name)}" for name in names),
            "SET session_replication_role = DEFAULT",
        ]

    connection.ops.sql_flush = deletes  # type: ignore[method-assign]
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)
    yield
    from tests.web.left_connections import others

    with django_db_blocker.unblock():
        for said in others().values():
            warnings.warn(f"a connection to the test's database was left open; it said last: {said}", stacklevel=1)
