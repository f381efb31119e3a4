"""A server that answers without end, in bytes or in time, ends in one clear way and holds no thread."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.test_probe import probe
from tests.waiting import until
from tidesched_web.clusters.kubernetes import answers, client, guarded_pool
from tidesched_web.clusters.kubernetes import reflector as reflector_module
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import POD
from tidesched_web.clusters.kubernetes.probe import reason_of
from tidesched_web.clusters.kubernetes.reflector import Reflector

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = 2**20
PACKED = gzip.compress(b" " * (8 * MIB), 1)
# By then a server of these tests gives up, so that a client without bounds fails instead of hanging.
PATIENCE = 60.0

Says = Callable[[str, Callable[[bytes], None]], None]


def often(send: Callable[[bytes], None], data: bytes, pause: float = 0.0) -> None:
    """The same data until the client goes, or patience ends."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        send(data)
        time.sleep(pause)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def endless_body(_path: str, send: Callable[[bytes], None]) -> None:
    send(CHUNKED)
    often(send, chunk(b" " * 65536))


def long_body(_path: str, send: Callable[[bytes], None]) -> None:
    send(OK + b"Content-Length: %d\r\n\r\n" % 2**40)
    often(send, b" " * 65536)


def packed_body(_path: str, send: Callable[[bytes], None]) -> None:
    send(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED)


def slow_body(_path: str, send: Callable[[bytes], None]) -> None:
    send(OK + b"Content-Length: 100000\r\n\r\n")
    often(send, b" ", 0.1)


def slow_body_that_looks_whole(_path: str, send: Callable[[bytes], None]) -> None:
    send(OK + b"\r\n{}")
    often(send, b" ", 0.1)


def slow_size_of_a_chunk(_path: str, send: Callable[[bytes], None]) -> None:
    send(CHUNKED)
    often(send, b"0", 0.1)


def endless_trailers(_path: str, send: Callable[[bytes], None]) -> None:
    send(CHUNKED + chunk(b"{}") + b"0\r\n")
    often(send, b"X-More: yes\r\n", 0.01)


def slow_head(_path: str, send: Callable[[bytes], None]) -> None:
    send(OK + b"X-Long: ")
    often(send, b"a", 0.1)


def endless_interim_heads(_path: str, send: Callable[[bytes], None]) -> None:
    often(send, b"HTTP/1.1 100 Continue\r\n\r\n", 0.01)


@pytest.fixture
def says() -> Iterator[Callable[[Says], str]]:
    """Start a server that says what the function given says to each request; its address."""
    with contextlib.ExitStack() as stack:

        def start(behaviour: Says) -> str:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve(one: socket.socket) -> None:
                with contextlib.suppress(OSError), one:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        if not (more := one.recv(65536)):
                            return
                        head += more
                    behaviour(head.split(b" ")[1].decode(), one.sendall)

            def accept() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        one, _address = listening.accept()
                        threading.Thread(target=serve, args=(one,), daemon=True).start()

            threading.Thread(target=accept, daemon=True).start()
            return f"http://127.0.0.1:{listening.getsockname()[1]}"

        yield start


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a test reaches soon."""
    for name in ("READ", "WRITE"):
        monkeypatch.setattr(client, name, answers.Bound(MIB, 1.0))
    monkeypatch.setattr(guarded_pool, "HEAD_SECONDS", 1.0)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        (endless_body, "too_large", "longer than 1 MiB"),
        (long_body, "too_large", "longer than 1 MiB"),
        (packed_body, "too_large", "longer than 1 MiB"),
        (slow_body, "too_slow", "not ended after 1 s"),
        (slow_body_that_looks_whole, "too_slow", "not ended after 1 s"),
        (slow_size_of_a_chunk, "too_slow", "not ended after 1 s"),
        (endless_trailers, "too_slow", "not ended after 1 s"),
        (slow_head, "too_slow", "head of the answer has not ended after 1 s"),
        (endless_interim_heads, "too_slow", "head of the answer has not ended after 1 s"),
    ],
)
def test_an_answer_without_end_is_no_answer(
    says: Callable[[Says], str], behaviour: Says, code: str, words: str
) -> None:
    asked = client.KubernetesClient(Connection(says(behaviour), token="x"))
    try:
        with pytest.raises(client.Unreachable) as refused:
            asked.get("/api/v1/pods")
        assert (reason_of(refused.value), words in str(refused.value)) == (code, True), refused.value
        outcome = asked.send("POST", "/api/v1/namespaces/a/pods", {})
        assert (outcome.kind, outcome.maybe_done) == (OutcomeKind.UNREACHABLE, True)
        assert words in outcome.message
    finally:
        asked.close()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("behaviour", "code"), [(endless_body, "too_large"), (slow_body, "too_slow")])
def test_the_test_of_a_connection_says_so(says: Callable[[Says], str], behaviour: Says, code: str) -> None:
    assert code in probe(Connection(says(behaviour), token="x"))


def test_an_event_of_a_watch_has_an_end_too(says: Callable[[Says], str]) -> None:
    def watched(path: str, send: Callable[[bytes], None]) -> None:
        if "watch=1" in path:
            send(CHUNKED)
            often(send, chunk(b"a" * MIB))
        else:
            listed = b'{"metadata": {"resourceVersion": "7"}, "items": []}'
            send(OK + b"Content-Length: %d\r\n\r\n%s" % (len(listed), listed))

    class Nothing:
        def replace(self, *_: object) -> None: ...

        def change(self, *_: object) -> None: ...

    asked = client.KubernetesClient(Connection(says(watched), token="x"))
    reflector = Reflector(asked, POD, Nothing())
    reflector.start()
    try:
        assert until(lambda: "a line of the watch is longer than 16 MiB" in reflector.error)
    finally:
        reflector.stop()
        reflector.join(60)
        asked.close()


def test_a_list_has_an_end_too_and_one_that_is_not_wanted_any_more_ends_at_once(says, monkeypatch) -> None:
    asked_for = []

    def listed(path: str, send: Callable[[bytes], None]) -> None:
        asked_for.append(path)
        page = b'{"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []}'
        send(OK + b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(page), page))

    class Nothing:
        def replace(self, *_: object) -> None: ...

        def change(self, *_: object) -> None: ...

    asked = client.KubernetesClient(Connection(says(listed), token="x"))
    endless = Reflector(asked, POD, Nothing())
    endless.start()
    try:
        assert until(lambda: len(asked_for) > 5)
    finally:
        endless.stop()
        endless.join(60)
    assert not endless.is_alive()
    monkeypatch.setattr(reflector_module, "MOST_PAGES", 5)
    bounded = Reflector(asked, POD, Nothing())
    bounded.start()
    try:
        assert until(lambda: "has not ended after 5 pages" in bounded.error)
    finally:
        bounded.stop()
        bounded.join(60)
        asked.close()


def test_what_is_said_of_an_error_is_cut_and_may_have_any_shape(says) -> None:
    said = b'{"reason": ["x"], "details": "no map", "message": "%s"}' % (b"m" * MIB)

    def refused(_path: str, send: Callable[[bytes], None]) -> None:
        head = b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        send(head % len(said) + said)

    asked = client.KubernetesClient(Connection(says(refused), token="x"))
    try:
        with pytest.raises(client.ApiFailure) as failed:
            asked.get("/api/v1/pods")
        outcome = asked.send("POST", "/api/v1/namespaces/a/pods", {})
    finally:
        asked.close()
    assert outcome.kind is OutcomeKind.REFUSED
    assert len(outcome.message) == answers.MOST_OF_MESSAGE
    assert len(str(failed.value)) < answers.MOST_OF_MESSAGE + 100


def test_a_line_costs_what_it_holds_however_small_its_pieces_are() -> None:
    class Crumbs:
        def stream(self, _size: int) -> Iterator[bytes]:
            for number in range(200_000):
                yield b"%02d" % (number % 100)
            yield b"\n"

    tracemalloc.start()
    try:
        (line,) = answers.lines_of(Crumbs())  # type: ignore[arg-type]  # as above
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(line), peak < 4 * len(line)) == (400_000, True), peak


def test_lines_come_whole_however_they_are_cut() -> None:
    class Pieces:
        def stream(self, _size: int) -> Iterator[bytes]:
            yield from (b"a", b"b\n", b"\n\n", b"cd\nef\ng", b"h", b"\nunfinished")

    assert list(answers.lines_of(Pieces())) == [b"ab", b"cd", b"ef", b"gh"]  # type: ignore[arg-type]  # a stream is all it asks
