import sys

from django.core.management.base import BaseCommand

from tidesched_web.embedded.__main__ import main


class Command(BaseCommand):
    help = "Run TideSched with its own PostgreSQL and Valkey in the foreground, until a signal."
    requires_system_checks = []

    def handle(self, *args: object, **options: object) -> None:
        sys.exit(main(["up"]))
