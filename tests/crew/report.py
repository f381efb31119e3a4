"""The report of a run, as text and as JSON."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.crew.book import Book
from tests.crew.ledger import Ledger
from tests.crew.verdict import GATED, Memory, percentile, quiet, unexcused

MIB = 2**20


def machine() -> str:
    """Processors and memory of the machine."""
    cpus = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    total = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    return f"{cpus} processors, {int(total) / MIB:.0f} GiB"


def figures(
    *,
    name: str,
    people: str,
    seconds: float,
    commit: str,
    book: Book,
    ledger: Ledger,
    memories: list[Memory],
    cpu: dict[str, float],
    waited: float,
    loads: list[float],
    restarts: dict[str, int],
    notes: list[str],
    failings: list[str],
    done: dict[str, int],
) -> dict[str, Any]:
    """Everything that the report says."""
    pages = {}
    for page, times in sorted(ledger.times.items()):
        values = [seconds for _began, seconds in quiet(times, book.faults)]
        if values:
            pages[page] = {
                "count": len(times),
                "p50": round(percentile(values, 0.5), 3),
                "p95": round(percentile(values, 0.95), 3),
                "most": round(max(values), 3),
                "gated": page.startswith(GATED),
            }
    counted = unexcused(ledger, book.faults)
    return {
        "run": name,
        "people": people,
        "minutes": round(seconds / 60, 1),
        "commit": commit,
        "machine": machine(),
        "load_average": {"median": percentile(loads, 0.5), "most": max(loads)} if loads else {},
        "failings": failings,
        "promises": book.counts(),
        "not_kept": [asdict(one) for one in book.promises if one.outcome not in ("kept", "open")],
        "done": done,
        "edits": {"applied": len(book.written), "lost": book.lost},
        "pages": pages,
        "by_minute": by_minute(ledger),
        "statuses": statuses(ledger),
        "received_mib": round(ledger.received / MIB, 1),
        "troubles": {
            "counted": dict(Counter(one.kind for one in counted)),
            "excused by a fault": dict(
                Counter(one.kind for one in ledger.troubles) - Counter(one.kind for one in counted)
            ),
        },
        "trouble_lines": [one.line() for one in counted],
        "faults": [asdict(one) for one in book.faults.faults],
        "memory": {
            one.name: {
                "first_mib": round(one.samples[0][1] / MIB, 1),
                "last_mib": round(one.samples[-1][1] / MIB, 1),
                "growth_after_ten_minutes": one.growth(),
                "samples": [[round(at), round(size / MIB, 1)] for at, size in one.samples],
            }
            for one in memories
            if one.samples
        },
        "cpu_seconds": cpu,
        "crew_waited_seconds": waited,
        "restarts": {key: count for key, count in restarts.items() if count},
        "notes": notes,
    }


def by_minute(ledger: Ledger) -> list[dict[str, Any]]:
    """How long the gated answers took, by the minute in which they were asked for."""
    minutes: dict[int, list[float]] = {}
    for page, times in ledger.times.items():
        if page.startswith(GATED):
            for began, seconds in times:
                minutes.setdefault(int(began // 60), []).append(seconds)
    return [
        {
            "at": time.strftime("%H:%M", time.gmtime(60 * minute)),
            "count": len(values),
            "p50": round(percentile(values, 0.5), 3),
            "p95": round(percentile(values, 0.95), 3),
        }
        for minute, values in sorted(minutes.items())
    ]


def statuses(ledger: Ledger) -> dict[str, int]:
    """How many answers there were of each status."""
    found: Counter[str] = Counter()
    for name, count in ledger.statuses.items():
        found[name.rpartition(" ")[2]] += count
    return dict(sorted(found.items()))


def text(record: dict[str, Any]) -> str:
    """The report as a person reads it."""
    begin = (
        f"Crew: {record['run']} ({record['people']}), {record['minutes']} minutes, commit {record['commit']}, "
        f"{record['machine']}, load average {record['load_average']}"
    )
    lines = [
        begin,
        "",
        "HOLDS" if not record["failings"] else f"FAILS: {len(record['failings'])} reasons",
        *(f"  {line}" for line in record["failings"][:200]),
        "",
        "Promises            kept  broken  explained  void  open",
        *(
            f"  {kind:16} {count['kept']:6} {count['broken']:7} {count['explained']:10} {count['void']:5} "
            f"{count['open']:5}"
            for kind, count in record["promises"].items()
        ),
        f"Edits: {record['edits']['applied']} figures applied, {len(record['edits']['lost'])} lost",
        *(f"  {kind:48} {count:7}" for kind, count in sorted(record["done"].items())),
        "",
        "Page (* p95 below 1 s is asked for)                  count      p50      p95     most",
        *(
            f"{'*' if row['gated'] else ' '} {page:48} {row['count']:7} {row['p50']:8.3f} {row['p95']:8.3f} "
            f"{row['most']:8.3f}"
            for page, row in record["pages"].items()
        ),
        "",
        "Those with *, by minute                              count      p50      p95",
        *(f"  {row['at']:48} {row['count']:7} {row['p50']:8.3f} {row['p95']:8.3f}" for row in record["by_minute"]),
        f"Answers by status: {record['statuses']}; {record['received_mib']} MiB received",
        f"Troubles that count: {record['troubles']['counted']}; excused: {record['troubles']['excused by a fault']}",
        "",
        "Memory in MiB        first     last   since the first ten minutes",
    ]
    for name, row in record["memory"].items():
        grown = row["growth_after_ten_minutes"]
        lines.append(
            f"  {name:14} {row['first_mib']:8.1f} {row['last_mib']:8.1f}   "
            + (f"{100 * grown:+.1f} %" if grown is not None else "too short a run")
        )
    lines += ["", f"Processor seconds: {record['cpu_seconds']}"]
    lines += [
        f"The crew's threads waited {record['crew_waited_seconds']} s for a processor",
        f"Restarts: {record['restarts'] or 'none'}",
    ]
    if record["faults"]:
        lines += [
            "",
            "Faults:",
            *(
                f"  {one['what']} {one['part']} {one['begin']:.0f}–{one['end'] or 0:.0f}, "
                f"all answered again {one['back'] or 0:.0f}"
                for one in record["faults"]
            ),
        ]
    if record["notes"]:
        lines += ["", f"Notes ({len(record['notes'])}):", *(f"  {note}" for note in record["notes"][:100])]
    return "\n".join(lines) + "\n"


def store(record: dict[str, Any], folder: Path) -> Path:
    """Write both; the address of the text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record['run']}.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    path = folder / f"{record['run']}.txt"
    path.write_text(text(record), encoding="utf-8")
    return path
