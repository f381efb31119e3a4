"""The book and its gates: each kind of failure, planted once, is named; what a fault excuses, and what not."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.crew import auditor, saboteur
from tests.crew.book import APPLIED, BROKEN, EXPLAINED, IMPACT, KEPT, VOID, Book
from tests.crew.deeds import EDIT, LOOK, Deeds
from tests.crew.editors import shows
from tests.crew.faults import FaultLog, named_parts
from tests.crew.ledger import CONSOLE, STOPPED, STRANGER, UNREACHABLE, Ledger
from tests.crew.verdict import PAGES, Memory, Rules, failings, percentile

LOOSE = Rules(at_least=0)
PAGE = "timed page queues"


def nothing() -> tuple[Book, Ledger, FaultLog]:
    faults = FaultLog()
    return Book(faults), Ledger(), faults


def answer(ledger: Ledger, status: int, *, at: float = 100.0, seconds: float = 0.1, **more: object) -> None:
    given = {"method": "GET", "headers": {}, "behaved": True, "page": PAGE} | more
    ledger.answered(person="reader", where="/queues/", status=status, began=at, seconds=seconds, size=1, **given)
    if ledger.troubles:
        ledger.troubles[-1].at = at


def test_a_run_in_which_all_is_well_has_no_failing() -> None:
    book, ledger, faults = nothing()
    book.check(book.promise(APPLIED, "change 1", "4 H200", 1.0), kept=True, came="4 H200", at=2.0)
    book.wrote("queue/a H200", 4, 7, "change 1")
    book.compare_cells({"queue/a H200": 4}, "the cluster")
    answer(ledger, 200)
    assert failings(book, ledger, faults, [], LOOSE) == []


def test_a_broken_promise_is_named_with_what_was_said_and_what_came() -> None:
    book, ledger, faults = nothing()
    book.check(book.promise(IMPACT, "change 1", "starts a/b", 1.0), kept=False, came="a/b waits", at=2.0)
    assert failings(book, ledger, faults, [], LOOSE) == [
        "promises broken: impact: 0 of 1 kept",
        "promise broken: impact at change 1: said “starts a/b”, came “a/b waits”",
    ]


def test_of_a_hundred_one_may_be_broken_and_two_may_not() -> None:
    book, ledger, faults = nothing()
    for number in range(99):
        book.check(book.promise(APPLIED, "c", str(number), 1.0), kept=True, came="", at=2.0)
    book.check(book.promise(APPLIED, "c", "x", 1.0), kept=False, came="", at=2.0)
    assert failings(book, ledger, faults, [], LOOSE) == []
    book.check(book.promise(APPLIED, "c", "y", 1.0), kept=False, came="", at=2.0)
    assert "promises broken: applied: 99 of 101 kept" in failings(book, ledger, faults, [], LOOSE)


CELL = "crew-sheet-5 NVIDIA-B300"


def test_a_figure_of_another_admin_whose_page_has_not_said_applied_yet_breaks_no_promise() -> None:
    book, ledger, faults = nothing()
    book.begin("change 62", {CELL: 5})
    mine = book.wrote(CELL, 2, 100, "change 61")
    promise = book.promise(APPLIED, "change 61", "2", 1.0)
    book.applied(promise, mine, found=5, at=2.0)
    assert failings(book, ledger, faults, [], LOOSE) == ["promises not checked: applied: 1"], "its end is awaited"
    book.wrote(CELL, 5, 101, "change 62")
    book.end("change 62")
    assert (promise.outcome, promise.came) == (VOID, "change 62 came after it")
    assert failings(book, ledger, faults, [], LOOSE) == []


@pytest.mark.parametrize(
    ("rival", "version", "found"),
    [(5, 99, 5), (5, 101, 4), (5, None, 5), (4, 101, 5), (None, None, 5)],
    ids=["an older change", "another figure", "it is not applied", "a later figure that is another", "no other change"],
)
def test_a_figure_that_no_later_change_explains_breaks_the_promise(
    rival: int | None, version: int | None, found: int
) -> None:
    book, _ledger, _faults = nothing()
    mine = book.wrote(CELL, 2, 100, "change 61")
    promise = book.promise(APPLIED, "change 61", "2", 1.0)
    if rival is not None:
        book.begin("change 62", {CELL: rival})
    book.applied(promise, mine, found=found, at=2.0)
    if rival is not None and version is not None:
        book.wrote(CELL, rival, version, "change 62")
    book.end("change 62")
    assert (promise.outcome, promise.came) == (BROKEN, f"the cluster has {found}")


def test_an_edit_that_was_stopped_under_way_leaves_nothing_to_compare_with() -> None:
    book, _ledger, _faults = nothing()
    mine = book.wrote(CELL, 2, 100, "change 61")
    one, other = (book.promise(APPLIED, "change 61", "2", 1.0) for _ in range(2))
    book.begin("change 62", {CELL: 5})
    book.applied(one, mine, found=5, at=2.0)
    book.applied(other, mine, found=4, at=2.0)
    book.end("change 62", known=False)
    assert (one.outcome, other.outcome) == (VOID, BROKEN)


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [("3 →\n5", 5, True), ("5", 5, True), ("5", 4, False), ("5 →\n3", 5, False), ("", 0, True), ("–", 0, True),
     ("", 2, False), ("3 →\n0", 0, True)],
)  # fmt: skip
def test_a_typed_figure_is_read_from_its_cell_also_where_it_stands_already(
    text: str, value: int, *, shown: bool
) -> None:
    assert shows(text, value) == shown


def test_an_open_promise_and_too_few_of_a_kind_are_failings() -> None:
    book, ledger, faults = nothing()
    book.promise(APPLIED, "c", "x", 1.0)
    found = failings(book, ledger, faults, [], Rules(at_least=1))
    assert "promises not checked: applied: 1" in found
    assert "too few promises: applied: 0 of at least 1" in found


@pytest.mark.parametrize(
    ("named_at", "outcome"),
    [(None, BROKEN), (5.0, BROKEN), (15.0, EXPLAINED), (45.0, EXPLAINED), (55.0, BROKEN)],
)
def test_a_broken_promise_is_explained_only_by_a_fault_that_a_page_named_and_the_crew_made(
    named_at: float | None, outcome: str
) -> None:
    book, _ledger, faults = nothing()
    faults.begin("valkey", "SIGSTOP", 10.0).end = 20.0
    promise = book.promise(APPLIED, "c", "x", 1.0)
    if named_at is not None:
        book.name_fault(promise, "Redis does not answer", named_at)
    assert book.check(promise, kept=False, came="not there", at=60.0) == outcome


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("TideSched cannot reach its Redis at the moment", EXPLAINED),
        ("TideSched cannot reach its database at the moment", BROKEN),
        ("No process of the role sessions moves on now.", BROKEN),
        ("The API server does not answer.", BROKEN),
        ("Sending is stopped.", BROKEN),
    ],
)
def test_a_page_that_names_another_part_than_the_crew_stopped_explains_nothing(said: str, outcome: str) -> None:
    book, _ledger, faults = nothing()
    faults.begin("valkey", "SIGSTOP", 10.0).end = 20.0
    promise = book.promise(APPLIED, "c", "x", 1.0)
    book.name_fault(promise, said, 15.0)
    assert book.check(promise, kept=False, came="not there", at=60.0) == outcome


def test_pages_name_each_part_in_words_of_their_own() -> None:
    said = {
        "postgres": "TideSched cannot reach its database at the moment",
        "valkey": "Redis does not answer: what the processes say of themselves cannot be read.",
        "simcluster": "The API server does not answer. Sessions wait and nothing is sent",
        "what-if": "No process of the role what-if moves on now.",
    }
    assert {part: named_parts(text) for part, text in said.items()} == {part: {part} for part in said}
    assert named_parts("; ".join(said.values())) == set(said)
    assert named_parts("Sending is stopped.") == set()


def test_each_part_is_killed_and_stopped() -> None:
    parts = {"sessions", "push", "work", "what-if", "web", "web-2", "valkey", "postgres", "simcluster"}
    acts = [(act.__name__, name) for act, name in saboteur.plan()]
    assert {name for act, name in acts if act == "kill"} == parts
    assert {name for act, name in acts if act in ("hang", "stop")} == parts
    assert len(acts) == len(set(acts)) == 18


@pytest.mark.parametrize(("part", "fails"), [("web", False), ("web-2", False), ("valkey", True)])
def test_a_read_that_nothing_answers_is_excused_where_web_itself_was_away(part: str, *, fails: bool) -> None:
    book, ledger, faults = nothing()
    faults.begin(part, "SIGKILL", 10.0).end = 20.0
    ledger.trouble(UNREACHABLE, "reader", "/", "refused", at=15.0)
    assert bool(failings(book, ledger, faults, [], LOOSE)) == fails


def test_what_a_page_names_after_the_check_explains_nothing() -> None:
    book, _ledger, faults = nothing()
    faults.begin("valkey", "SIGSTOP", 10.0).end = 20.0
    promise = book.promise(APPLIED, "c", "x", 1.0)
    assert book.check(promise, kept=False, came="not there", at=14.0) == BROKEN
    book.name_fault(promise, "Redis does not answer", 15.0)
    assert book.check(promise, kept=True, came="there", at=16.0) == BROKEN


def test_a_person_whom_a_fault_stopped_leaves_void_promises_and_one_who_just_stops_open_ones() -> None:
    book, ledger, faults = nothing()
    promise = book.promise(APPLIED, "c", "x", 1.0)
    book.give_up("tired", 2.0)
    assert failings(book, ledger, faults, [], LOOSE) == ["promises not checked: applied: 1"]
    faults.begin("postgres", "SIGKILL", 10.0).end = 20.0
    book.give_up("no answer", 30.0)
    assert (promise.outcome, failings(book, ledger, faults, [], LOOSE)) == (VOID, [])


def test_a_run_in_which_people_get_little_done_does_not_hold() -> None:
    deeds, faults = Deeds(), FaultLog()
    deeds.did(EDIT, "ann")
    assert deeds.failings(faults, {EDIT: 1}, ("ann",)) == []
    assert deeds.failings(faults, {EDIT: 2, LOOK: 1}, ("ann", "bob")) == [
        "too little done: an edit in a browser: 1 of at least 2",
        "too little done: a gang looked for by its tenant's admin: 0 of at least 1",
        "nothing done: bob",
    ]


def test_who_gives_up_often_outside_of_faults_is_named() -> None:
    deeds, faults = Deeds(), FaultLog()
    for number in range(20):
        deeds.did(EDIT, "ann")
        deeds.gave_up(EDIT, "ann", "the page does not open", 100.0 + number)
    assert deeds.failings(faults, {}, ())[0] == "given up: an edit in a browser: 20 times, done 20 times"
    faults.begin("web", "SIGKILL", 95.0).end = 95.0
    assert deeds.failings(faults, {}, ()) == []


@pytest.mark.parametrize(("at", "fails"), [(12.0, False), (200.0, True)])
def test_a_person_whose_work_stops_is_a_failing_unless_a_fault_stopped_them(at: float, *, fails: bool) -> None:
    book, ledger, faults = nothing()
    faults.begin("postgres", "SIGKILL", 10.0).end = 10.0
    ledger.trouble(STOPPED, "auditor", "their work", "TimeoutError", at=at)
    assert bool(failings(book, ledger, faults, [], LOOSE)) == fails


def test_what_is_not_back_after_a_fault_is_a_failing() -> None:
    book, ledger, faults = nothing()
    faults.begin("push", "SIGKILL", 10.0).end = 10.0
    ledger.trouble(STOPPED, "saboteur", "push", "SIGKILL: not ready again within 120 s", at=30.0)
    assert failings(book, ledger, faults, [], LOOSE) != []


def test_a_run_in_which_much_cannot_be_compared_does_not_hold() -> None:
    book, ledger, faults = nothing()
    for number in range(3):
        book.void(book.promise(IMPACT, "c", str(number), 1.0), "overtaken", 2.0)
    book.check(book.promise(IMPACT, "c", "x", 1.0), kept=True, came="", at=2.0)
    assert failings(book, ledger, faults, [], LOOSE) == ["too many promises void: impact: 3, 1 compared"]


def receipt(**other: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "source": "own",
        "session": {"number": 12},
        "reclaimer": "chat/bot",
        "rule": "",
        "state": "done",
        "victims": [victim()],
    } | other


def victim(*ended: str) -> dict[str, Any]:
    return {"gang": "lab/train", "pods": ["lab/train-0", "lab/train-1"], "ended_pods": list(ended)}


def written(key: str, resource: str, session: str, wall: float, detail: str = "") -> dict[str, Any]:
    found = {"key": key, "resource": resource, "session": session, "wall": wall, "detail": detail}
    return found | {"code": 201, "dry_run": False}


RAN = [written(f"lab/train-{number}", "pods/binding", "3", 5.0, f"node-{number}") for number in range(2)]
EVICTED = [*RAN, *(written(f"lab/train-{number}", "pods/eviction", "12", 10.0) for number in range(2))]
BOUND = written("chat/bot-0", "pods/binding", "13", 12.0, "node-1")


@pytest.mark.parametrize(
    ("row", "log", "outcome"),
    [
        (receipt(), [*EVICTED, BOUND], KEPT),
        (receipt(reclaimer="chat/other"), [*EVICTED, BOUND], BROKEN),
        (receipt(session={"number": 11}), [*EVICTED, BOUND], BROKEN),
        (receipt(), [*EVICTED[:3], BOUND], BROKEN),
        (receipt(), [*EVICTED, BOUND | {"detail": "node-2"}], BROKEN),
        (receipt(), [*EVICTED, BOUND | {"wall": 9.0}], BROKEN),
        (receipt(victims=[]), [*EVICTED, BOUND], BROKEN),
        (receipt(victims=[victim("lab/train-1")]), [*EVICTED[:3], BOUND], KEPT),
        (receipt(victims=[victim("lab/train-1")]), [*EVICTED, BOUND], BROKEN),
        (receipt(victims=[victim("lab/train-0", "lab/train-1")]), RAN, VOID),
        (receipt(victims=[victim("lab/train-0", "lab/train-1")]), EVICTED, BROKEN),
        (receipt(state="cancelled"), RAN, VOID),
        (receipt(state="cancelled"), [*EVICTED, BOUND], BROKEN),
    ],
)
def test_a_receipt_is_compared_with_pods_session_and_who_came_after(
    monkeypatch: pytest.MonkeyPatch, row: dict[str, Any], log: list[dict[str, Any]], outcome: str
) -> None:
    book, _ledger, _faults = nothing()
    monkeypatch.setattr(auditor, "SETTLE_SECONDS", 0.0)
    cluster = SimpleNamespace(writes=lambda: log, has_gang=lambda _gang: True)
    scene: Any = SimpleNamespace(book=book, cluster=cluster, status_line=lambda: "")
    client: Any = SimpleNamespace(get=lambda _path, page: httpx.Response(200, json=row))
    auditor.compare(scene, client, row)
    assert [one.outcome for one in book.promises] == [outcome]


def test_an_eviction_without_a_receipt_is_a_broken_promise() -> None:
    book, _ledger, _faults = nothing()
    more = written("lab/other-0", "pods/eviction", "12", 11.0)
    foreign = written("lab/third-0", "pods/eviction", "", 11.0)
    scene: Any = SimpleNamespace(book=book, cluster=SimpleNamespace(writes=lambda: [*EVICTED, more, foreign]))
    client: Any = SimpleNamespace(rows=lambda _path, page: [receipt()])
    auditor.receipts_are_whole(scene, client)
    assert [one.said for one in book.of(BROKEN)] == ["each eviction has a receipt: lab/other-0"]


def test_a_lost_edit_is_the_newest_version_that_is_not_there() -> None:
    book, ledger, faults = nothing()
    book.wrote("queue/a H200", 4, 9, "change 2")
    book.wrote("queue/a H200", 3, 8, "change 1")
    book.compare_cells({"queue/a H200": 3}, "the cluster")
    assert failings(book, ledger, faults, [], LOOSE) == [
        "edit lost: queue/a H200: change 2 called 4 applied, the cluster has 3"
    ]


def test_a_server_error_a_429_and_a_503_to_a_well_behaved_client_are_failings() -> None:
    book, ledger, faults = nothing()
    for status in (500, 429, 503):
        answer(ledger, status)
    assert [one.split(": ")[0].split(" ")[1] for one in failings(book, ledger, faults, [], LOOSE)] == [
        "5xx",
        "429",
        "503",
    ]


def test_a_hostile_client_may_be_refused_but_may_not_break_anything() -> None:
    book, ledger, faults = nothing()
    for status in (429, 503, 413, 500):
        answer(ledger, status, behaved=False)
    (line,) = failings(book, ledger, faults, [], LOOSE)
    assert "→ 500" in line


@pytest.mark.parametrize(
    ("at", "status", "method", "headers", "fails"),
    [
        (15.0, 503, "GET", {"retry-after": "5"}, False),
        (15.0, 503, "GET", {}, True),
        (15.0, 503, "POST", {}, False),
        (15.0, 500, "GET", {"retry-after": "5"}, True),
        (15.0, 429, "GET", {"retry-after": "5"}, True),
        (49.0, 503, "GET", {"retry-after": "5"}, False),
        (51.0, 503, "GET", {"retry-after": "5"}, True),
        (5.0, 503, "GET", {"retry-after": "5"}, True),
    ],
)
def test_what_a_fault_excuses(at: float, status: int, method: str, headers: dict[str, str], *, fails: bool) -> None:
    book, ledger, faults = nothing()
    faults.begin("postgres", "SIGKILL", 10.0).end = 20.0
    answer(ledger, status, at=at, method=method, headers=headers)
    assert bool(failings(book, ledger, faults, [], LOOSE)) == fails


def test_what_a_stranger_saw_is_excused_by_no_fault_and_a_console_error_only_by_one() -> None:
    book, ledger, faults = nothing()
    faults.begin("postgres", "SIGKILL", 10.0).end = 20.0
    ledger.trouble(STRANGER, "stranger", "/gangs/7/", "200", at=15.0)
    ledger.trouble(CONSOLE, "quota admin", "/", "TypeError", at=15.0)
    ledger.trouble(CONSOLE, "quota admin", "/", "TypeError: x", at=99.0)
    ledger.trouble(UNREACHABLE, "reader", "/", "reset", at=15.0)
    found = failings(book, ledger, faults, [], LOOSE)
    assert [line.split(" ", 1)[1].split(":")[0] for line in found] == ["stranger saw", "console error", "unreachable"]


def test_a_slow_page_is_named_and_times_under_a_fault_do_not_count() -> None:
    book, ledger, faults = nothing()
    for number in range(100):
        answer(ledger, 200, seconds=2.0 if number < 6 else 0.1)
    assert failings(book, ledger, faults, [], LOOSE) == ["slow: timed page queues: p95 2.00 s of 100 answers"]
    assert failings(book, ledger, faults, [], Rules(at_least=0, times=False)) == []
    faults.begin("web", "SIGSTOP", 100.0).end = 101.0
    assert failings(book, ledger, faults, [], LOOSE) == []


def test_a_run_in_which_the_timekeeper_asked_too_little_fails() -> None:
    book, ledger, faults = nothing()
    answer(ledger, 200)
    found = failings(book, ledger, faults, [], Rules(at_least=1, kinds=()))
    assert len(found) == len(PAGES)
    assert found[1] == "too few answers: timed page queues: 1 of at least 20"
    for page in PAGES:
        for _number in range(20):
            answer(ledger, 200, page=page)
    assert failings(book, ledger, faults, [], Rules(at_least=1, kinds=())) == []


def test_each_answer_of_a_probe_comes_in_time() -> None:
    book, ledger, faults = nothing()
    answer(ledger, 200)
    answer(ledger, 200, page="timed probe readyz", seconds=1.999)
    assert failings(book, ledger, faults, [], LOOSE) == []
    answer(ledger, 200, page="timed probe readyz", seconds=2.001)
    (line,) = failings(book, ledger, faults, [], LOOSE)
    assert re.fullmatch(r"slow: timed probe readyz: 1 of 2 answers later than 2000 ms: \d\d:\d\d:\d\d 2001 ms", line)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile([3.0], 0.95)) == (50.0, 95.0, 3.0)


def test_a_process_that_grew_after_its_first_ten_minutes_is_named() -> None:
    book, ledger, faults = nothing()
    flat = Memory("web", [(at, 100 + (at < 600) * at) for at in range(0, 3600, 10)])
    grown = Memory("sessions", [(at, 100_000 + at * 4) for at in range(0, 3600, 10)])
    short = Memory("push", [(at, 100 + at) for at in range(0, 700, 10)])
    assert failings(book, ledger, faults, [flat, grown, short], LOOSE) == [
        "grew: sessions: +11.2 % since its first ten minutes"
    ]


def test_what_two_processes_wrote_is_one_ledger(tmp_path) -> None:
    _book, one, _faults = nothing()
    other = Ledger()
    answer(one, 200)
    answer(other, 500)
    other.store(tmp_path / "ledger.json")
    one.add(tmp_path / "ledger.json")
    assert len(one.times[PAGE]) == 2
    assert [trouble.kind for trouble in one.troubles] == ["5xx"]
    assert KEPT
