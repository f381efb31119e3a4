"""What a walk over the REST API finds at each operation."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Findings:
    """Failures (what could not be run is one) and answers by status, of each operation."""

    failures: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def without_success(self) -> list[str]:
        """Those that were never answered with a 2xx."""
        return sorted(name for name, answers in self.answers.items() if not any(200 <= one < 300 for one in answers))

    def table(self) -> str:
        """One line an operation: how many answers of each class."""
        lines = [f"{'operation':64}{'2xx':>7}{'3xx':>7}{'4xx':>7}{'5xx':>7}"]
        for operation, answers in sorted(self.answers.items()):
            classes = Counter[int]()
            for status, count in answers.items():
                classes[status // 100] += count
            lines.append(f"{operation:64}" + "".join(f"{classes[one]:7}" for one in (2, 3, 4, 5)))
        return "\n".join(lines)

    def faults(self) -> dict[str, list[str]]:
        """The first of each operation's failures."""
        return {operation: failures[:3] for operation, failures in self.failures.items() if failures}
