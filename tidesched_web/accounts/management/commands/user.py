import getpass
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from tidesched_web.accounts import selectors, services
from tidesched_web.accounts.models import PlatformRole, TenantRole
from tidesched_web.common.actors import OPERATOR
from tidesched_web.common.commands import answers_domain_errors
from tidesched_web.common.errors import DomainError

PASSWORD_VARIABLE = "TIDESCHED_PASSWORD"  # noqa: S105, the name of a variable


class Command(BaseCommand):
    """Accounts: make one, or set a password. Passwords come from a variable or the terminal, never from arguments."""

    help = f"Make accounts and set passwords; the password is asked for, or read from ${PASSWORD_VARIABLE}."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        create = acts.add_parser("create", help="make an account")
        create.add_argument("user")
        create.add_argument("--role", choices=[role for role in PlatformRole.values if role], default="")
        create.add_argument("--email", default="")
        create.add_argument("--service", action="store_true", help="no password: acts through tokens only")
        create.add_argument("--tenant", action="append", default=[], metavar="SLUG[:admin]", help="a member of it")
        password = acts.add_parser("password", help="set a new password")
        password.add_argument("user")

    @answers_domain_errors
    def handle(self, *args: Any, **options: Any) -> None:
        name = options["user"]
        if options["act"] == "password":
            user = selectors.user_by_name(name)
            if user is None:
                known = ", ".join(selectors.usernames())
                raise DomainError("unknown_user", f"Unknown user {name!r}. Known users: {known}.")
            services.change_password(
                user=user, old_password=None, new_password=_password(), actor=OPERATOR, end_tokens=True
            )
            return
        places = [_place(word) for word in options["tenant"]]
        user = services.create_user(
            username=name,
            password=None if options["service"] else _password(),
            email=options["email"],
            platform_role=options["role"],
            actor=OPERATOR,
        )
        for tenant, role in places:
            services.set_membership(user=user, tenant=tenant, role=role, actor=OPERATOR)
        self.stderr.write(f"made user {user.username}")


def _place(word: str) -> tuple[Any, str]:
    slug, _, role = word.partition(":")
    tenant = selectors.tenant_by_slug(slug)
    if tenant is None:
        known = ", ".join(selectors.tenant_slugs()) or "none yet"
        raise DomainError("unknown_tenant", f"Unknown tenant {slug!r}. Known tenants: {known}.")
    return tenant, role or TenantRole.MEMBER


def _password() -> str:
    given = os.environ.get(PASSWORD_VARIABLE, "")
    if given:
        return given
    if not sys.stdin.isatty():
        raise DomainError("invalid", f"No terminal to ask for a password: set {PASSWORD_VARIABLE}, or use --service.")
    first = getpass.getpass("Password: ")
    if first != getpass.getpass("Again: "):
        raise DomainError("invalid", "The two passwords differ.")
    return first
