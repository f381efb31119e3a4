import datetime as dt
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from tidesched_web.audit import bundle, head_file, key_services, segment_services, selectors, signing_services
from tidesched_web.audit.models import Segment
from tidesched_web.audit.rights import role_may_change_entries
from tidesched_web.audit.verification import trust, verify_all, verify_chain
from tidesched_web.common.actors import OPERATOR
from tidesched_web.common.commands import answers_domain_errors
from tidesched_web.common.errors import DomainError


class Command(BaseCommand):
    """Looks after the chains of the audit log; `verify` exits with status 1 where one is broken."""

    help = "Verify the chains of the audit log; sign, seal, export and drop."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        verify = acts.add_parser("verify", help="check every entry of every chain")
        verify.add_argument("--chain", help="only this one, such as platform or cluster:1")
        verify.add_argument("--heads", type=Path, metavar="FILE", help="a head file that was kept elsewhere")
        verify.add_argument("--key", action="append", default=[], metavar="HEX", help="a public key that is trusted")
        acts.add_parser("heads", help="write the head file to stdout: every signed head, a line each")
        acts.add_parser("bundle", help="write all tables of the log to stdout, for deploy/audit/verify_audit.py")
        acts.add_parser("sign", help="sign the end of each chain now")
        keys = acts.add_parser("keys", help="print the public keys, the one that signs now last")
        keys.add_argument("--new", action="store_true", help="sign with a new key from now on")
        seal = acts.add_parser("seal", help="close a segment over the older entries of each chain")
        seal.add_argument("--older-than", type=int, default=30, metavar="DAYS")
        acts.add_parser("segments", help="list the segments")
        export = acts.add_parser("export", help="write the file of a segment to stdout")
        export.add_argument("segment", type=int)
        drop = acts.add_parser("drop", help="let the entries of an exported segment go")
        drop.add_argument("segment", type=int)
        drop.add_argument("--reason", required=True)

    @answers_domain_errors
    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["act"])(options)

    def verify(self, options: dict[str, Any]) -> None:
        held = trust(pinned=options["key"], heads=options["heads"])
        reports = [verify_chain(options["chain"], held)] if options["chain"] else verify_all(held)
        for report in reports:
            if report.intact:
                self.stdout.write(
                    f"{report.chain}: {report.checked} entries hold from {report.first_seq} on, "
                    f"{report.signatures} signatures agree, the last hash is {report.last_hash}"
                )
            for found in report.findings:
                self.stdout.write(f"{report.chain}: broken at entry {found.seq} ({found.kind}): {found.text}")
        if role_may_change_entries():
            self.stderr.write(
                "note: the database lets this application change and delete entries; DATABASE_OWNER_URL "
                "(docs/audit.md, The roles of the database) prevents it"
            )
        if not all(report.intact for report in reports):
            sys.exit(1)

    def heads(self, options: dict[str, Any]) -> None:
        for line in head_file.lines():
            self.stdout.write(line.decode(), ending="")

    def bundle(self, options: dict[str, Any]) -> None:
        for page in bundle.pages():
            self.stdout.write(page.decode(), ending="")

    def sign(self, options: dict[str, Any]) -> None:
        signing_services.vouch_for_early_entries()
        for head in signing_services.sign_heads(at_once=True):
            self.stdout.write(f"{bytes(head.statement).decode()} {head.signature} {head.key_id}")

    def keys(self, options: dict[str, Any]) -> None:
        if options["new"]:
            signing_services.new_signing_key(actor=OPERATOR)
        key_services.signing_key()
        for key in selectors.signing_keys():
            self.stdout.write(f"{key.key_id} {key.public_key} since {key.created_at.isoformat()}")

    def seal(self, options: dict[str, Any]) -> None:
        before = timezone.now() - dt.timedelta(days=options["older_than"])
        for segment in segment_services.seal(before=before, actor=OPERATOR):
            self._tell(segment)

    def segments(self, options: dict[str, Any]) -> None:
        for segment in selectors.segments():
            self._tell(segment)

    def export(self, options: dict[str, Any]) -> None:
        segment = self._segment(options)
        for line in segment_services.segment_lines(segment):
            self.stdout.write(line.decode(), ending="")
        segment_services.mark_exported(segment=segment, actor=OPERATOR)

    def drop(self, options: dict[str, Any]) -> None:
        segment_services.drop(segment=self._segment(options), actor=OPERATOR, reason=options["reason"])
        self.stdout.write(f"{segment_services.purge()} rows or partitions were removed")

    def _segment(self, options: dict[str, Any]) -> Segment:
        found = selectors.segments().filter(pk=options["segment"]).first()
        if found is None:
            raise DomainError("not_found", f"There is no segment {options['segment']}; see `manage.py audit segments`.")
        return found

    def _tell(self, segment: Segment) -> None:
        said = f"{segment}, {segment.entries} entries, {segment.state}, sha256 {segment.sha256}"
        self.stdout.write(f"{segment.pk}: {said}")
