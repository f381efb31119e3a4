"""Safe to run again: it skips what is done."""

import json
import os
import secrets
import time
from argparse import ArgumentParser
from collections.abc import Callable

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.selectors import user_by_name
from tidesched_web.accounts.services import sign_in_settings
from tidesched_web.audit import rights
from tidesched_web.audit.signing_services import vouch_for_early_entries
from tidesched_web.clusters import services as clusters
from tidesched_web.common import database_roles
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.errors import DomainError
from tidesched_web.console import build
from tidesched_web.embedded.prepared import PREPARED_FILE
from tidesched_web.scheduling.retention import ensure_partitions

ADMIN = "admin"
ADMIN_FILE = "admin.json"


class Command(BaseCommand):
    help = "Bring schema, first account, catalogues, static files and the demo up to date."
    requires_system_checks = []  # the checks ask for a schema that this command makes

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--build-only", action="store_true", help="only what needs no database: an image's build")

    def handle(self, *args: object, **options: object) -> None:
        build_only = bool(options["build_only"])
        if settings.EMBEDDED and not build_only:  # `make up` compiles when it is ready: its workers begin without
            self._installation(build_only=False)
            return
        kernels = build.start_compiling()
        if kernels is not None:
            self.stdout.write(
                "compiling the scheduler, once for this version: some minutes; the rest goes on beside it"
            )
            self.stdout.flush()
        try:
            self._installation(build_only=build_only)
        finally:
            self._step("compiled code", lambda: build.finish_compiling(kernels))

    def _installation(self, *, build_only: bool) -> None:
        self._step("catalogues", build.compile_catalogues)
        self._step("static files", build.collect_static)
        if build_only:
            return
        self._step("schema", _migrate)
        self._step("rights of the application's role", lambda: database_roles.grant(rights.RIGHTS, rights.FUNCTIONS))
        # Before the first rows of this hour come: what lies in the default partition cannot be moved.
        self._step("partitions", lambda: bool(ensure_partitions()))
        self._step("encryption keys", _known_keys)
        self._step("audit log", lambda: bool(vouch_for_early_entries()))
        self._step("first account", _first_account)
        self._step("identity provider", sign_in_settings.provider_of_environment)
        if settings.EMBEDDED:
            settings.DATA_DIR.joinpath(PREPARED_FILE).touch()
        if settings.DEMO:
            self._step("demo cluster", _demo)

    def _step(self, title: str, do: Callable[[], bool]) -> None:
        start = time.monotonic()
        try:
            changed = do()
        except (DomainError, ImproperlyConfigured) as error:
            raise CommandError(f"{title}: {error}") from None
        self.stdout.write(f"{title}: {'done' if changed else 'up to date'} ({time.monotonic() - start:.1f} s)")
        self.stdout.flush()


@database_roles.as_owner()
def _migrate() -> bool:
    loader = MigrationLoader(connection)
    ours = {config.label for config in apps.get_app_configs()}
    unknown = sorted(
        f"{app}.{name}"
        for app, name in set(loader.applied_migrations) - set(loader.disk_migrations)
        if app in ours and not any((app, name) in migration.replaces for migration in loader.disk_migrations.values())
    )
    if unknown:
        raise CommandError(
            "the data was written by a newer TideSched, or by one from before the schema of 0.1.0: this one does not "
            f"know the schema change {unknown[-1]}.\n"
            "hint: start the version that wrote it, or choose another DATA_DIR or DATABASE_URL; manage.py tree export "
            "there and manage.py tree apply here take the quota tree along."
        )
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return False
    call_command("migrate", interactive=False, verbosity=0)
    return True


def _known_keys() -> bool:
    clusters.refuse_foreign_keys()
    return False


def _first_account() -> bool:
    """Make the admin with ADMIN_PASSWORD, else with a password of this installation's own, kept in the data folder."""
    given = os.environ.get("ADMIN_PASSWORD", "")
    if given and len(given) < settings.PASSWORD_LENGTH:
        raise CommandError(
            f"ADMIN_PASSWORD has {len(given)} characters: a password has at least {settings.PASSWORD_LENGTH}. Nothing "
            "was changed."
        )
    user = user_by_name(ADMIN)
    if user is None:
        password = given or _kept_password() or secrets.token_urlsafe(15)
        _keep_password(password)
        return accounts.ensure_admin(username=ADMIN, password=password)
    if given and not user.check_password(given):
        accounts.change_password(user=user, old_password=None, new_password=given, actor=SYSTEM)
        _keep_password(given)
        return True
    kept = _kept_password()
    if kept and not user.check_password(kept):
        _keep_password(given)  # another one was chosen: the first is of no use any more
        return True
    return False


def _kept_password() -> str:
    try:
        return str(json.loads((settings.DATA_DIR / ADMIN_FILE).read_text())["password"])
    except (FileNotFoundError, ValueError, KeyError):
        return ""


def _keep_password(password: str) -> None:
    if not settings.EMBEDDED:
        return
    target = settings.DATA_DIR / ADMIN_FILE
    fresh = target.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"username": ADMIN} | ({"password": password} if password else {}), file)
        file.write("\n")
    fresh.replace(target)


def _demo() -> bool:
    call_command("demo_setup")
    return True
