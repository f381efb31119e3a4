import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tidesched_web import env
from tidesched_web.accounts.demo_people import invented, keep
from tidesched_web.changes.services import demo, demo_life
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.services.push import PushReport, push_cluster

_WAIT_SECONDS = 30.0


class Command(BaseCommand):
    help = "Make the demo where it is missing and push its queues. May be run again at any time."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--url", default=settings.SIMCLUSTER_URL, help="address of the simulated cluster")
        parser.add_argument("--token-file", default=settings.SIMCLUSTER_TOKEN_FILE, help="holds its bearer token")

    def handle(self, *args: object, **options: Any) -> None:
        url, token_file = options["url"], options["token_file"]
        if not url or not token_file:
            raise CommandError("Where is the simulated cluster? Give --url and --token-file, or start it by `make up`.")
        try:
            token = Path(token_file).read_text(encoding="ascii").strip()
        except OSError as error:
            raise CommandError(f"The token of the simulated cluster cannot be read: {error}") from None
        people = invented() if settings.EMBEDDED else []
        try:
            size = env.demo_size()
        except ValueError as error:
            raise CommandError(str(error)) from None
        cluster, made = demo.ensure_demo(url=url, token=token, people=people, size=size)
        if made:
            keep(people)
        elif off := demo_life.forget_people():
            self.stdout.write(f"demo: {off} accounts of the demo are switched off, since a real cluster is connected")
        report = _push(cluster)
        for what, why in report.refused.items():
            self.stderr.write(f"refused: {what}: {why}")
        if report.unreachable:
            raise CommandError(f"The simulated cluster does not answer at {url}: {report.unreachable}")
        # Later on it is what a person changed in the cluster: the page of drift shows it, and nothing is to stop.
        if report.refused and made:
            raise CommandError("The simulated cluster refused a part of the demo.")
        if made:
            demo_life.edit_by_hand(cluster)
        self.stdout.write(f"demo: {'made' if made else 'there already'}, {report.pushed} objects pushed")


def _push(cluster: Cluster) -> PushReport:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        report = push_cluster(cluster=cluster, everything=True)
        if not report.unreachable or time.monotonic() > deadline:
            return report
        time.sleep(0.25)
