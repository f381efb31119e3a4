from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from tidesched_web.accounts import selectors, services
from tidesched_web.accounts.models import ApiToken, Scope, Tenant, User
from tidesched_web.accounts.tokens import parse_lifetime
from tidesched_web.common.actors import OPERATOR
from tidesched_web.common.commands import answers_domain_errors
from tidesched_web.common.errors import DomainError


class Command(BaseCommand):
    """Tokens: make one (its text is the only line on stdout), list them, end one."""

    help = "Make, list and revoke API tokens."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        create = acts.add_parser("create", help="make a token; stdout is its text")
        create.add_argument("user", help="the account that it acts for")
        create.add_argument(
            "--scope", action="append", required=True, metavar="SCOPE", help=f"one or more of {', '.join(Scope.values)}"
        )
        create.add_argument(
            "--expires", metavar="TIME", help="a life time such as 90d, 12h or 30m; for ever without it"
        )
        create.add_argument("--tenant", metavar="SLUG", help="may see this tenant only")
        create.add_argument("--name", default="", help="a word to know it by")
        listing = acts.add_parser("list", help="show tokens, never their text")
        listing.add_argument("user", nargs="?", help="only those of this account")
        revoke = acts.add_parser("revoke", help="end a token")
        revoke.add_argument("token", help="its id, or how it begins")

    @answers_domain_errors
    def handle(self, *args: Any, **options: Any) -> None:
        if options["act"] == "create":
            self._create(options)
        elif options["act"] == "list":
            self._list(options["user"])
        else:
            self._revoke(options["token"])

    def _create(self, options: dict[str, Any]) -> None:
        user = _user(options["user"])
        lifetime = parse_lifetime(options["expires"]) if options["expires"] else None
        _, plain = services.create_token(
            user=user,
            scopes=options["scope"],
            name=options["name"],
            expires_at=timezone.now() + lifetime if lifetime else None,
            tenant=_tenant(options["tenant"]) if options["tenant"] else None,
            actor=OPERATOR,
        )
        self.stdout.write(plain)

    def _list(self, username: str | None) -> None:
        for token in selectors.all_tokens(_user(username) if username else None):
            state = str(token.state)
            words = [str(token.pk), f"{token.prefix}…", token.user.username, state, " ".join(token.scopes)]
            if token.tenant:
                words.append(f"tenant {token.tenant.slug}")
            if token.expires_at and state == "live":
                words.append(f"until {token.expires_at:%Y-%m-%dT%H:%MZ}")
            self.stdout.write("\t".join(words))

    def _revoke(self, wanted: str) -> None:
        token = _token(wanted)
        if services.revoke_token(token=token, actor=OPERATOR):
            self.stderr.write(f"revoked {token.prefix}… of {token.user.username}")
        else:
            self.stderr.write(f"{token.prefix}… of {token.user.username} was revoked before")


def _user(username: str) -> User:
    user = selectors.user_by_name(username)
    if user is None:
        known = ", ".join(selectors.usernames()) or "none; make one with `manage.py user create`"
        raise DomainError("unknown_user", f"Unknown user {username!r}. Known users: {known}.")
    return user


def _tenant(slug: str) -> Tenant:
    tenant = selectors.tenant_by_slug(slug)
    if tenant is None:
        known = ", ".join(selectors.tenant_slugs()) or "none yet"
        raise DomainError("unknown_tenant", f"Unknown tenant {slug!r}. Known tenants: {known}.")
    return tenant


def _token(wanted: str) -> ApiToken:
    found = selectors.tokens_like(wanted)
    if len(found) != 1:
        raise DomainError("not_found", f"{len(found)} tokens fit {wanted!r}; `manage.py token list` shows all.")
    return found[0]
