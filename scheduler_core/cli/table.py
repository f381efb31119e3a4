"""The result as tables for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from scheduler_core.model.decision import Result
from scheduler_core.model.resources import Amount, cards_to_json
from scheduler_core.serde.result import format_time

# What a pipe or a file gets, so that the same input gives the same bytes there.
PIPE_WIDTH = 180


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def print_result(result: Result, *, timings: bool) -> None:
    """Print what was decided, the most important first; empty parts are left out."""
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH, color_system=None)
    waiting = len(result.reasons)
    console.print(
        f"{format_time(result.now)}: {_count(len(result.binds), 'bind')}, {_count(len(result.evictions), 'eviction')},"
        f" {len(result.pipelined)} promised, {_count(waiting, 'gang')} {'waits' if waiting == 1 else 'wait'}"
    )
    _print(
        console,
        "Reclaims",
        ("reclaimer", "queue", "needs", "victims", "frees", "work lost", "rule"),
        [
            (
                reclaim.reclaimer,
                reclaim.queue,
                amount(reclaim.needed),
                ", ".join(victim.gang for victim in reclaim.victims),
                amount(reclaim.freed),
                f"{sum(victim.work_lost_card_seconds for victim in reclaim.victims):.0f} card s",
                reclaim.rule,
            )
            for reclaim in result.reclaims
        ],
    )
    _print(
        console,
        "Evictions",
        ("pod", "node", "gang", "for", "role"),
        [(e.pod, e.node, e.gang, e.reclaimer, e.role.value) for e in result.evictions],
    )
    _print(console, "Binds", ("pod", "node", "card"), [(b.pod, b.node, b.card) for b in result.binds])
    _print(console, "Promised", ("pod", "node", "card"), [(b.pod, b.node, b.card) for b in result.pipelined])
    _print(
        console,
        "Waiting",
        ("gang", "reason", "why"),
        [(reason.podgroup, reason.code.value, reason.message) for reason in result.reasons],
    )
    _print(
        console,
        "Gangs",
        ("gang", "queue", "service", "phase", "ready", "min"),
        [
            (gang.name, gang.queue, gang.service_type, gang.phase.value, str(gang.ready), str(gang.min_member))
            for gang in result.podgroups
        ],
    )
    _print(
        console,
        "Queues",
        ("queue", "state", "quota", "allocated", "admitted", "share"),
        [
            (
                queue.name, queue.state, amount(queue.quota), amount(queue.allocated), amount(queue.inqueue),
                f"{queue.share:.0%}",
            )
            for queue in result.queues
        ],
    )  # fmt: skip
    if timings:
        rows = [(name, f"{ms:.2f} ms") for name, ms in result.timings_ms.items()]
        _print(console, "Timings", ("action", "time"), rows)


def amount(value: Amount) -> str:
    """Cards first, then CPU and memory; a dash for nothing."""
    parts = [f"{cards_to_json(milli)} {name}" for name, milli in sorted(value.cards.items()) if milli]
    if value.cpu_milli:
        parts.append(f"{value.cpu_milli / 1000:g} CPU")
    if value.memory_mib:
        parts.append(f"{value.memory_mib / 1024:.4g} GiB")
    return ", ".join(parts) or "-"


def _print(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        # Names may hold brackets, which rich would read as markup.
        table.add_row(*(cell.replace("[", "\\[") for cell in row))
    console.print(table)
