"""A Kubernetes API server for use by hand.

python -m tests.kube build                 kube-apiserver and etcd, once
python -m tests.kube serve DIR             both on loopback until Ctrl-C; DIR gets a kubeconfig, token and ca.crt
    [--stand-ins] [--grace SECONDS]        with kubelets and controllers
    [--definitions FOLDER]                 CRDs from there in place of the project's own
"""

from __future__ import annotations

import argparse
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

from tests.kube.binaries import Binaries, find_or_build


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tests.kube", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("build")
    serve = commands.add_parser("serve")
    serve.add_argument("folder", type=Path)
    serve.add_argument("--stand-ins", action="store_true")
    serve.add_argument("--grace", type=float, default=2.0)
    serve.add_argument("--definitions", type=Path)
    beside = commands.add_parser("stand-ins")
    beside.add_argument("folder", type=Path)
    beside.add_argument("url")
    beside.add_argument("--grace", type=float, default=2.0)
    arguments = parser.parse_args()
    if arguments.command == "stand-ins":
        _stand_by(arguments)
        return
    binaries = find_or_build()
    if arguments.command == "build":
        print(binaries.folder)
        return
    _serve(binaries, arguments)


def _serve(binaries: Binaries, arguments: argparse.Namespace) -> None:
    from tests.kube.real_server import DEFINITIONS, RealServer  # not needed to build, and slow to load
    from tests.kube.standins.runner import StandIns

    folder = arguments.folder.resolve()
    server = RealServer(folder, binaries, definitions=[DEFINITIONS, *filter(None, [arguments.definitions])])
    ended = _ended()
    with ExitStack() as at_the_end:
        at_the_end.callback(server.stop)
        server.start()
        if arguments.stand_ins:
            at_the_end.enter_context(StandIns(server, grace=arguments.grace))
        print(f"{server.url}  {server.folder}/{{kubeconfig,token,ca.crt}}", flush=True)
        ended.wait()


def _stand_by(arguments: argparse.Namespace) -> None:
    from tests.cluster.servers import ApiServer
    from tests.kube.standins.runner import StandIns

    server = ApiServer()
    server.url, server.token = arguments.url, (arguments.folder / "token").read_text()
    server.ca_certificate = (arguments.folder / "ca.crt").read_text()
    ended = _ended()
    with StandIns(server, grace=arguments.grace):
        print("ready", flush=True)
        ended.wait()


def _ended() -> threading.Event:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    return ended


if __name__ == "__main__":
    main()
