import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.common.card_names import card_label
from tidesched_web.console import amounts, bars
from tidesched_web.console.change_words import field_name, figure
from tidesched_web.console.reason_words import reason_sentence

Row = Mapping[str, Any]
ROWS = 12


@dataclass(frozen=True, slots=True)
class Entry:
    gang: str
    queue: str
    cards: str
    note: str
    service_type: str = ""
    often: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    key: str
    title: str
    icon: str
    tone: str
    entries: list[Entry]
    more: list[Entry]
    count: int
    hidden: int


@dataclass(frozen=True, slots=True)
class HoursRow:
    card: str
    queue: str
    gained: float
    lost: float
    over: float
    gained_bar: bars.UsageBar
    lost_bar: bars.UsageBar


@dataclass(frozen=True, slots=True)
class ImpactView:
    line: str
    sections: list[Section]
    pending: bool
    stale: bool
    at: dt.datetime | None = None
    hours: list[HoursRow] = field(default_factory=list)
    flood_unknown: bool = False


_TITLES: dict[str, tuple[str | Promise, str, str]] = {
    "gangs_run": (gettext_lazy("Would run at once"), "player-play", "good"),
    "gangs_promised": (gettext_lazy("Would get cards that are being taken back"), "hourglass", "admitted"),
    "gangs_admitted": (gettext_lazy("Would be admitted, and wait for cards"), "door-enter", "waiting"),
    "gangs_lose": (gettext_lazy("Would lose their place"), "alert-triangle", "reclaimed"),
    "queues_over": (gettext_lazy("Queues above their new quota"), "stack-2", "waiting"),
    "reclaimed_next": (gettext_lazy("Reclaimed at the next session"), "arrow-back-up", "reclaimed"),
    "reclaimed_at_flood": (gettext_lazy("Reclaimed when inference uses its full quota"), "ripple", "reclaimed"),
    "spared_next": (gettext_lazy("No longer reclaimed now"), "shield-check", "good"),
    "spared_at_flood": (gettext_lazy("No longer reclaimed when inference uses its full quota"), "shield-check", "good"),
}
_BECOMES = {
    "running": gettext_lazy("runs"),
    "promised": gettext_lazy("gets a promise of cards that come free"),
    "admitted": gettext_lazy("is admitted and waits for cards"),
    "larger": gettext_lazy("runs with more pods"),
}
_GAINS = ("gangs_run", "gangs_promised", "gangs_admitted")
_WAS = {
    "running": gettext_lazy("would have run"),
    "promised": gettext_lazy("had a promise of cards"),
    "admitted": gettext_lazy("was admitted"),
    "larger": gettext_lazy("would have run with more pods"),
}


def view_of(impact: Row) -> ImpactView:
    counts, hidden = impact.get("counts", {}), impact.get("hidden", {})
    pending = set(impact.get("pending", ()))
    sections = []
    for key, (title, icon, tone) in _TITLES.items():
        rows = impact.get(key) or []
        count = counts.get(key, len(rows))
        if count:
            entries = [_entry(key, row) for row in rows]
            sections.append(
                Section(key, str(title), icon, tone, entries[:ROWS], entries[ROWS:], count, hidden.get(key, 0))
            )
    unknown = bool(impact.get("flood_unavailable"))
    at, stale = parse_datetime(impact.get("at") or ""), bool(impact.get("stale"))
    return ImpactView(_line(counts, impact), sections, bool(pending), stale, at, _hours(impact), unknown)


def _line(counts: Mapping[str, int], impact: Row) -> str:
    parts = []
    if runs := counts.get("gangs_run", 0):
        text = ngettext("%(n)s gang would run at once", "%(n)s gangs would run at once", runs)
        parts.append(text % {"n": amounts.number(runs)})
    elif any(counts.get(name) for name in _GAINS):
        # The headline counts what runs at once alone: a promise is listed, not counted.
        parts.append(_("No gang would run at once"))
    if loses := counts.get("gangs_lose", 0):
        text = ngettext("%(n)s gang would lose its place", "%(n)s gangs would lose their place", loses)
        parts.append(text % {"n": amounts.number(loses)})
    elif parts and not counts.get("reclaimed_next"):
        parts.append(_("No gang would lose its place"))
    if taken := counts.get("reclaimed_next", 0):
        parts.append(
            ngettext("%(n)s would be reclaimed", "%(n)s would be reclaimed", taken) % {"n": amounts.number(taken)}
        )
    if over := counts.get("queues_over", 0):
        text = ngettext("%(n)s queue is above its new quota", "%(n)s queues are above their new quota", over)
        parts.append(text % {"n": amounts.number(over)})
    said = " · ".join(parts) if parts else _("The next session would decide the same as today")
    if sessions := impact.get("sessions"):
        told = ngettext("%(n)s recorded session was tried", "%(n)s recorded sessions were tried", sessions["tried"])
        said += " · " + told % {"n": amounts.number(sessions["tried"])}
        said += " · " + _("%(n)s would have gone otherwise") % {"n": amounts.number(sessions["changed"])}
    return said


def _entry(key: str, row: Row) -> Entry:
    cards = amounts.cards_text(row["cards"]) if row.get("cards") else ""
    often = row.get("sessions", 0)
    if key == "queues_over":
        pointer = f"/{row['resource']}" if row["resource"] in ("cpu_milli", "memory_bytes") else ""
        name = field_name(pointer) if pointer else card_label(row["resource"])
        note = _("%(name)s: %(used)s in use after the next session, quota %(before)s → %(after)s") % {
            "name": name,
            "used": figure(pointer, row["in_use"]),
            "before": figure(pointer, row["quota_before"]),
            "after": figure(pointer, row["quota"]),
        }
        return Entry("", row["queue"] or "", "", note, row.get("service_type", ""), often)
    note = ""
    if key in _GAINS:
        note = str(_BECOMES.get(row["becomes"], row["becomes"]))
        if before := row.get("reason_before"):
            note += " · " + _("waits now: %(reason)s") % {"reason": reason_sentence(before["code"], before["numbers"])}
    elif key == "gangs_lose":
        note = str(_WAS.get(row["was"], row["was"]))
        if reason := row.get("reason"):
            note += " · " + reason_sentence(reason["code"], reason["numbers"])
    elif row.get("reclaimer"):
        note = _("for %(gang)s") % {"gang": row["reclaimer"]}
        if row.get("work_lost_card_seconds"):
            note += " · " + _("%(work)s lost") % {"work": amounts.work(row["work_lost_card_seconds"])}
        if row.get("last_restart"):
            note += " · " + _("its last restart: the job fails")
    return Entry(row["gang"], row.get("queue") or "", cards, note, row.get("service_type", ""), often)


def _hours(impact: Row) -> list[HoursRow]:
    rows = [
        (card, queue, told)
        for card, by_queue in sorted((impact.get("card_hours") or {}).items())
        for queue, told in by_queue.items()
        if told["gained"] or told["lost"] or told["over"]
    ]
    largest = max((max(told["gained"], told["lost"]) for _card, _queue, told in rows), default=0)
    rows.sort(key=lambda row: (row[0], -max(row[2]["gained"], row[2]["lost"]), row[1]))
    return [
        HoursRow(
            card,
            queue,
            told["gained"],
            told["lost"],
            told["over"],
            bars.amount_bar(
                "inference",
                told["gained"],
                largest,
                _("%(n)s card-hours gained") % {"n": amounts.number(told["gained"])},
            ),
            bars.amount_bar(
                "reclaimed", told["lost"], largest, _("%(n)s card-hours lost") % {"n": amounts.number(told["lost"])}
            ),
        )
        for card, queue, told in rows
    ]
