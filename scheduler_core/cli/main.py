"""Runs a command and turns every error into its exit status and one clear message. Exit status: 0 decided, 1 internal
error or broken invariant (``lint``: something was found), 2 bad input."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise

from scheduler_core.cli.arguments import build_parser
from scheduler_core.model.errors import BadInput, BrokenInvariant

DECIDED, INTERNAL_ERROR, BAD_INPUT = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: that of the process) and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = wants_json(arguments)
    try:
        options = build_parser().parse_args(arguments)
        status = _run(options)
        sys.stdout.flush()
        return status
    except BadInput as error:
        report(error, as_json)
        return BAD_INPUT
    except BrokenInvariant as error:
        report(BadInput("broken_invariant", str(error), hint="please report it with this input"), as_json)
        return INTERNAL_ERROR
    except BrokenPipeError:
        # The reader of the output has gone; the interpreter must not complain about it when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERNAL_ERROR
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 the last line of defence: a bug must show as exit status 1
        if not as_json:
            traceback.print_exc()
        report(BadInput("internal_error", f"{type(error).__name__}: {error}", hint="please report it"), as_json)
        return INTERNAL_ERROR


def _run(options: argparse.Namespace) -> int:
    # Imported only where it is used: the simulator is not needed to decide one session.
    if options.command == "replay":
        from scheduler_core.cli import replay

        return replay.main(options)
    if options.command == "explain":
        from scheduler_core.cli import explain

        return explain.main(options)
    if options.command == "lint":
        from scheduler_core.cli import lint

        return lint.main(options)
    from scheduler_core.cli import run

    return run.main(options)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are to be JSON; also where the rest of the options cannot be read."""
    return "--output=json" in arguments or any(pair == ("--output", "json") for pair in pairwise(arguments))


def report(error: BadInput, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.to_json(), ensure_ascii=False, sort_keys=True), file=sys.stderr)
        return
    place = ":".join(str(part) for part in (error.file, error.line) if part is not None)
    parts = [part for part in (place, error.path) if part]
    hint = f" ({error.hint})" if error.hint else ""
    print(f"error: {''.join(f'{part}: ' for part in parts)}{error.message}{hint} [{error.code}]", file=sys.stderr)
