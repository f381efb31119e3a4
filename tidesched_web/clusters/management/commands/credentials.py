from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from tidesched_web.accounts.services import mfa
from tidesched_web.accounts.services.identities import seal_secrets_anew
from tidesched_web.audit.signing_services import encrypt_signing_keys_anew
from tidesched_web.clusters import services
from tidesched_web.common.commands import answers_domain_errors


class Command(BaseCommand):
    """After a new key was put in front of TIDESCHED_KEYS: `rotate`, and then the old one may go."""

    help = "Check that every stored credential can be read, or encrypt all of them with the first key."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        acts.add_parser("check", help="exit status 2 where a key is missing")
        acts.add_parser("rotate", help="encrypt every credential with the first key")

    @answers_domain_errors
    def handle(self, *args: Any, **options: Any) -> None:
        services.refuse_foreign_keys()
        if options["act"] == "rotate":
            clusters, signing_keys = services.rotate_credentials(), encrypt_signing_keys_anew()
            secrets = seal_secrets_anew() + mfa.encrypt_anew()
            said = f"{clusters} credentials, {secrets} secrets of sign-in and {signing_keys} signing keys"
            self.stdout.write(f"{said} were encrypted anew")
        else:
            self.stdout.write("every stored credential can be read")
