"""Options of the commands."""

import argparse
import math
from collections.abc import Callable
from typing import NoReturn

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes.decode import parse_time


class Parser(argparse.ArgumentParser):
    """A parser whose errors are bad input like any other."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and leaving."""
        raise BadInput("usage", message, hint=f"{self.prog} --help")


def build_parser() -> Parser:
    parser = Parser(
        prog="python -m scheduler_core", description="Decide for a cluster from files alone.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _run(commands.add_parser("run", help="decide one session over a snapshot of a cluster", allow_abbrev=False))
    _explain(commands.add_parser("explain", help="why one gang waits, with all candidates", allow_abbrev=False))
    _replay(commands.add_parser("replay", help="play a trace of tasks through the scheduler", allow_abbrev=False))
    _lint(commands.add_parser("lint", help="what a policy or a workload says and does not mean", allow_abbrev=False))
    return parser


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "gang", metavar="GANG", help="namespace/name of its PodGroup; the name alone where it is unique"
    )
    _session(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    _session(parser)
    parser.add_argument("--memory-out", metavar="FILE", help="where to write what the next session needs")
    parser.add_argument("--timings", action="store_true", help="add the milliseconds of each action to the result")


def _session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--snapshot", required=True, metavar="FILE", help="Kubernetes List, YAML or JSON; - = stdin")
    parser.add_argument("--conf", required=True, metavar="FILE", help="volcano-scheduler.conf or a ConfigMap with one")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--now", type=_time, metavar="RFC3339", help="default: the latest time in the snapshot")
    parser.add_argument("--seed", type=_integer(0), default=0)
    parser.add_argument("--memory", metavar="FILE", help="what the session before left (--memory-out)")
    parser.add_argument(
        "--scheduler-name",
        action="append",
        metavar="NAME",
        help="whose pods are scheduled; may be repeated (default: volcano, tidesched)",
    )


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", required=True, metavar="CSV", help="openb nodes: sn,cpu_milli,memory_mib,gpu,model")
    parser.add_argument("--pods", required=True, metavar="CSV", help="openb tasks")
    parser.add_argument("--tide", metavar="CSV", help="request rate over a day: seconds,qps")
    parser.add_argument("--queues", metavar="FILE", help="Queue objects; default: two queues for each card model")
    parser.add_argument("--conf", metavar="FILE", help="policy; default: that of the founding document")
    parser.add_argument("--gang-size", type=_integer(1), default=1, metavar="N")
    parser.add_argument("--hours", type=_number(above=0), default=24.0)
    parser.add_argument("--scale", type=_number(above=0), default=1.0, help="multiplies the number of tasks")
    parser.add_argument("--session-seconds", type=_number(above=0), default=10.0, metavar="S")
    parser.add_argument("--grace-seconds", type=_number(least=0), default=30.0, metavar="S")
    parser.add_argument("--seed", type=_integer(0), default=42)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--out", metavar="FILE", help="write the report there instead of to stdout")
    parser.add_argument("--trace", metavar="FILE", help="write what happened as NDJSON")


def _lint(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--conf", metavar="FILE", help="volcano-scheduler.conf or a ConfigMap with one; - = stdin")
    what.add_argument("--workload", metavar="FILE", help="Deployments, Jobs, pods, queues; YAML or JSON; - = stdin")
    parser.add_argument(
        "--output", choices=("table", "json"), help="default: table on a terminal, json where a program reads it"
    )


def _time(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, write for example 2026-08-20T12:00:00Z") from None


def _integer(least: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return value

    return convert


def _number(*, above: float | None = None, least: float | None = None) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not math.isfinite(value) or (above is not None and value <= above) or (least is not None and value < least):
            bound = f"more than {above:g}" if above is not None else f"{least:g} or more"
            raise argparse.ArgumentTypeError(f"{text} is not a number of {bound}")
        return value

    return convert
