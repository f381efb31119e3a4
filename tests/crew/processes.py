"""Memory and processor time of the product's processes and of the crew, from /proc."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from tests.crew.verdict import Memory

_TICK = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> tuple[int, float] | None:
    """The parent and the seconds of processor time that it used itself."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[1]), sum(int(one) for one in fields[11:13]) / _TICK
    return None


def _waited(pid: int) -> float:
    """Seconds for which its threads were ready to run and had no processor."""
    total = 0
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                total += int((task / "schedstat").read_text().split()[1])
    return total / 1e9


def _bytes(pid: int) -> int:
    """The process's own share of memory; where that cannot be read, what it has resident."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def trees(roots: dict[str, int]) -> dict[str, list[int]]:
    """Each root with all that descends from it."""
    children = defaultdict(list)
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and (found := _stat(int(place.name))):
            children[found[0]].append(int(place.name))
    families = {}
    for root, pid in roots.items():
        family, open_ones = [], [pid]
        while open_ones:
            one = open_ones.pop()
            family.append(one)
            open_ones += children[one]
        families[root] = family
    return families


def give_way(family: list[int]) -> None:
    """Let the browsers give way as the rest of the crew does: each is a session of its own, which Linux shares the
    processor between before it looks at what is nice in each."""
    ours = os.getsid(0)
    for pid in family:
        with suppress(OSError):
            if os.getsid(pid) != ours:
                Path(f"/proc/{pid}/autogroup").write_text("19")


class Watch:
    """Samples of one installation (by the names of its `runtime.json`) and of the crew's own process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.monotonic()
        self.memories: dict[str, Memory] = {}
        self.loads: list[float] = []
        # What was used by a process that has gone is kept, so that a restart loses nothing.
        self._used: dict[str, dict[int, float]] = defaultdict(dict)
        self._at_start: dict[str, float] = {}
        self._waits: dict[int, float] = {}
        self._pids: dict[str, int] = {}
        self.restarts: dict[str, int] = defaultdict(int)

    def roots(self) -> dict[str, int]:
        """The processes of the installation, as it says itself."""
        with suppress(OSError, ValueError, KeyError):
            known = json.loads((self._folder / "runtime.json").read_text())["processes"]
            return {name: one["pid"] for name, one in known.items() if name != "prepare"}
        return {}

    def sample(self) -> None:
        """Look once."""
        roots = self.roots()
        for name, pid in roots.items():
            self.restarts[name] += self._pids.get(name, pid) != pid
            self._pids[name] = pid
        families = trees({**roots, "crew": os.getpid()})
        product = {pid for name, family in families.items() if name != "crew" for pid in family}
        families["crew"] = [pid for pid in families["crew"] if pid not in product]
        give_way(families["crew"])
        self._waits |= {pid: _waited(pid) for pid in families["crew"]}
        for name, family in families.items():
            for pid in family:
                if found := _stat(pid):
                    self._used[name][pid] = found[1]
            if name != "crew":
                memory = self.memories.setdefault(name, Memory(name))
                memory.samples.append((time.monotonic() - self._began, sum(_bytes(pid) for pid in family)))
        self.loads.append(os.getloadavg()[0])
        for name, used in self._used.items():
            self._at_start.setdefault(name, sum(used.values()))

    def seconds(self) -> dict[str, float]:
        """Processor time of each since the first sample."""
        return {name: round(sum(used.values()) - self._at_start[name], 1) for name, used in self._used.items()}

    def waited(self) -> float:
        """Seconds that the crew's threads, all together, waited for a processor."""
        return round(sum(self._waits.values()), 1)
