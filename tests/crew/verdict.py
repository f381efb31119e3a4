"""What a run fails on. Pure: it sees the book, the ledger, the faults of the crew and the memory of the processes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.crew.book import BROKEN, KEPT, KINDS, OPEN, VOID, Book
from tests.crew.crowd import PATHS
from tests.crew.faults import FaultLog
from tests.crew.ledger import CONSOLE, STOPPED, STRANGER, UNAVAILABLE, UNREACHABLE, Ledger, Trouble
from tests.crew.timed_pages import NAMES as OTHERS

P95_SECONDS = 1.0
KEPT_SHARE = 0.99
AT_LEAST = 30
# What cannot be compared proves nothing; of some kinds much ends by itself.
VOID_SHARE = 0.25
GROWTH = 0.10
WARM_SECONDS = 600.0
# What a person calls a page: the document, and the part of it that is fetched again; as the timekeeper measured it,
# and so without the crew's own waiting for a processor.
GATED = ("timed page ", "timed part ")
PROBES = "timed probe "
PROBE_SECONDS = 2.0
PAGES = (
    *(f"timed {kind} {name}" for kind in ("page", "part") for name in PATHS),
    *(f"timed page {name}" for name in OTHERS),
)
FEWEST = 20
SHOWN = 8


@dataclass(frozen=True)
class Rules:
    """Which gates hold in a run.

    ``at_least``: how many promises of each of ``kinds`` have to be compared, so that no run holds by saying nothing;
    ``least``: how often what people came for has to be done.
    """

    at_least: int = AT_LEAST
    kinds: tuple[str, ...] = KINDS
    least: dict[str, int] = field(default_factory=dict)
    times: bool = True


@dataclass
class Memory:
    """Samples of one process (with what it has forked): seconds since the start and bytes."""

    name: str
    samples: list[tuple[float, int]] = field(default_factory=list)

    def growth(self, warm: float = WARM_SECONDS) -> float | None:
        """How much it has grown since it was warm, as a share; None where the run was too short for that.

        The middle of the first two minutes after the warming up is compared with the middle of the last two.
        """
        if not self.samples or self.samples[-1][0] < warm + 240:
            return None
        last = self.samples[-1][0]
        early = sorted(size for at, size in self.samples if warm <= at <= warm + 120)
        late = sorted(size for at, size in self.samples if at >= last - 120)
        if not early or not late:
            return None
        return late[len(late) // 2] / early[len(early) // 2] - 1


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * int(share * 100) // 100) - 1))]


def excused(trouble: Trouble, faults: FaultLog) -> bool:
    """Whether a fault of the crew excuses it: a read may answer 503 with Retry-After, a write may be refused."""
    if trouble.kind == STRANGER or faults.at(trouble.at, before=1.0) is None:
        return False
    if trouble.kind == UNAVAILABLE:
        return trouble.write or trouble.retry_after
    if trouble.kind == UNREACHABLE:
        # Where the web process itself is away nothing answers for it.
        return trouble.write or faults.at(trouble.at, before=1.0, parts=("web", "web-2")) is not None
    return trouble.kind == CONSOLE or (trouble.kind == STOPPED and trouble.person != "saboteur")


def unexcused(ledger: Ledger, faults: FaultLog) -> list[Trouble]:
    """The troubles that count."""
    return [one for one in ledger.troubles if not excused(one, faults)]


def grouped(troubles: list[Trouble]) -> list[str]:
    """The first lines of each kind, and how many more there are."""
    lines = []
    for kind in dict.fromkeys(one.kind for one in troubles):
        of_kind = [one.line() for one in troubles if one.kind == kind]
        lines += of_kind[:SHOWN]
        if len(of_kind) > SHOWN:
            lines.append(f"{kind}: {len(of_kind) - SHOWN} more")
    return lines


def quiet(times: list[tuple[float, float]], faults: FaultLog) -> list[tuple[float, float]]:
    """The answers that no fault delayed: when each was asked for, and its seconds."""
    return [(began, seconds) for began, seconds in times if faults.at(began, before=5.0) is None]


def late(times: list[tuple[float, float]]) -> list[str]:
    """The answers of a probe that came too late, each with its time of day."""
    return [
        f"{time.strftime('%H:%M:%S', time.gmtime(began))} {1000 * seconds:.0f} ms"
        for began, seconds in times
        if seconds > PROBE_SECONDS
    ]


def slow(ledger: Ledger, faults: FaultLog, enough: int) -> list[str]:
    """What the timekeeper found too slow, and where it has asked fewer than ``enough`` times."""
    lines = []
    for page in PAGES if enough else ():
        if len(ledger.times.get(page, ())) < enough:
            lines.append(f"too few answers: {page}: {len(ledger.times.get(page, ()))} of at least {enough}")
    for page, times in sorted(ledger.times.items()):
        answers = quiet(times, faults)
        seconds = [taken for _began, taken in answers]
        if page.startswith(GATED) and len(seconds) >= FEWEST and percentile(seconds, 0.95) > P95_SECONDS:
            lines.append(f"slow: {page}: p95 {percentile(seconds, 0.95):.2f} s of {len(seconds)} answers")
        if page.startswith(PROBES) and (found := late(answers)):
            lines.append(
                f"slow: {page}: {len(found)} of {len(answers)} answers later than {1000 * PROBE_SECONDS:.0f} ms: "
                + ", ".join(found[:SHOWN])
            )
    return lines


def failings(book: Book, ledger: Ledger, faults: FaultLog, memories: list[Memory], rules: Rules) -> list[str]:
    """A line for each reason why the run fails; none: it holds."""
    lines = [f"edit lost: {what}" for what in book.lost]
    for kind, count in book.counts().items():
        known = count[KEPT] + count[BROKEN]
        if known and count[KEPT] < KEPT_SHARE * known:
            lines.append(f"promises broken: {kind}: {count[KEPT]} of {known} kept")
            lines += [f"promise broken: {one.line()}" for one in book.of(BROKEN) if one.kind == kind]
        if count[VOID] > max(2, VOID_SHARE * (known + count[VOID])):
            lines.append(f"too many promises void: {kind}: {count[VOID]}, {known} compared")
        if count[OPEN]:
            lines.append(f"promises not checked: {kind}: {count[OPEN]}")
        if kind in rules.kinds and known < rules.at_least:
            lines.append(f"too few promises: {kind}: {known} of at least {rules.at_least}")
    lines += grouped(unexcused(ledger, faults))
    if rules.times:
        lines += slow(ledger, faults, enough=FEWEST if rules.at_least else 0)
    for one in memories:
        grown = one.growth()
        if grown is not None and grown > GROWTH:
            lines.append(f"grew: {one.name}: {100 * grown:+.1f} % since its first ten minutes")
    return lines
