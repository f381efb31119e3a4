"""`manage.py audit verify`: does every chain still hold?"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from tidesched_web.audit.verification import verify_all, verify_chain


class Command(BaseCommand):
    """Walks the chains of the audit log; exit status 1 where one is broken."""

    help = "Verify the chains of the audit log."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The one act."""
        acts = parser.add_subparsers(dest="act", required=True)
        verify = acts.add_parser("verify", help="check every entry of every chain")
        verify.add_argument("--chain", help="only this one, such as platform or cluster:1")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each chain."""
        reports = [verify_chain(options["chain"])] if options["chain"] else verify_all()
        for report in reports:
            if report.intact:
                self.stdout.write(f"{report.chain}: {report.checked} entries hold, the last hash is {report.last_hash}")
            else:
                self.stdout.write(f"{report.chain}: broken at entry {report.broken_seq}: {report.problem}")
        if not all(report.intact for report in reports):
            sys.exit(1)
