import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tidesched_web.engine.bridge import result_document
from tidesched_web.engine.model import BadInput
from tidesched_web.scheduling.pipeline import inputs
from tidesched_web.scheduling.selectors import session_to_replay


class Command(BaseCommand):
    help = "Run a stored session again and compare its result with what was recorded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["replay"])
        parser.add_argument("id", type=int, help="the session's id (not its number)")
        parser.add_argument("--output", choices=["table", "json"], default="table")
        parser.add_argument("--result", action="store_true", help="with json: the whole result document too")

    def handle(self, *args: Any, **options: Any) -> None:
        session = session_to_replay(options["id"])
        if session is None:
            raise CommandError(f"There is no session {options['id']}.", returncode=2)
        try:
            found = inputs.replay(session)
        except BadInput as error:
            raise CommandError(error.message, returncode=2) from error
        facts = {
            "session": session.pk,
            "number": session.number,
            "cluster": session.cluster.slug,
            "same": found.same,
            "expected": found.expected,
            "found": found.found,
            "recorded_engine": found.recorded_engine,
            "engine": found.engine,
        }
        if options["output"] == "json":
            document = facts | ({"result": result_document(found.result)} if options["result"] else {})
            self.stdout.write(json.dumps(document, sort_keys=True, default=str))
        else:
            for name, value in facts.items():
                self.stdout.write(f"{name:16} {value}")
        if not found.same:
            raise CommandError("The session decides differently now.", returncode=1)
