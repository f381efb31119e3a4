"""Each session is run again from its own input, as it was and with the edit; it stands for the time until the next one.
Use beyond the new quota counts as ``over``: what has started under a larger quota shows in later inputs as running.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from tidesched_web.engine.edits import Edit
from tidesched_web.engine.model import BadInput
from tidesched_web.engine.what_if import SESSION_LISTS, Trial, card_use, cut, impact, try_out
from tidesched_web.jobs.running import Running
from tidesched_web.scheduling.input_selectors import StoredInput, inputs_since, newest_input
from tidesched_web.scheduling.pictures import Loaded

Row = dict[str, Any]

DAY = dt.timedelta(hours=24)
# Sessions that are tried: every six minutes of the day.
MOST_SESSIONS = 240
# A session stands for no more than this, where the next one is far.
LONGEST = dt.timedelta(minutes=30)
NO_SESSIONS = {"unavailable": "no_sessions", "detail": "No session of the last day is kept any more."}
# Names that are kept of each list; beyond them only the number of times counts.
MOST_NAMES = 2000


def chosen(stored: list[StoredInput], most: int = MOST_SESSIONS) -> list[StoredInput]:
    if len(stored) <= most:
        return stored
    start, end = stored[0].now, stored[-1].now
    span = max((end - start) / most + dt.timedelta.resolution, dt.timedelta(seconds=1))
    found: list[StoredInput] = []
    taken = -1
    for one in stored:
        place = (one.now - start) // span
        if place > taken:
            found.append(one)
            taken = place
    return found


class Day:
    def __init__(self, running: Running, edit: Edit) -> None:
        self.running, self.edit = running, edit
        assert running.job.cluster_id is not None
        self.cluster_id = running.job.cluster_id
        self.loaded = Loaded(self.cluster_id)
        self.state: Row = running.checkpoint or self._begin()

    def run(self) -> Row:
        if not self.state["sessions"]:
            return NO_SESSIONS
        stored = {
            one.session_id: one for one in inputs_since(self.cluster_id, dt.datetime.fromisoformat(self.state["from"]))
        }
        ids = self.state["sessions"]
        while self.state["next"] < len(ids) and not self._late():
            place = self.state["next"]
            one = stored.get(ids[place])
            self.state["next"] = place + 1
            if one is None or not self._try(one, place):
                self.state["missing"] += 1
            self.running.report(self.state["next"] / len(ids), checkpoint=self.state)
        return self._result()

    def _late(self) -> bool:
        return False

    def _begin(self) -> Row:
        newest = newest_input(self.cluster_id)
        since = newest.now - DAY if newest else None
        recorded = inputs_since(self.cluster_id, since) if since else []
        taken = chosen(recorded)
        ends = [one.now for one in (*taken[1:], *recorded[-1:])]
        seconds = [min(end - one.now, LONGEST).total_seconds() for one, end in zip(taken, ends, strict=True)]
        self.running.say(
            gettext_noop("%(tried)s of %(recorded)s recorded sessions are tried."),
            tried=len(taken), recorded=len(recorded),
        )  # fmt: skip
        return {
            "sessions": [one.session_id for one in taken],
            "seconds": seconds,
            "recorded": len(recorded),
            "from": taken[0].now.isoformat() if taken else "",
            "to": taken[-1].now.isoformat() if taken else "",
            "next": 0,
            "missing": 0,
            "changed": 0,
            "rows": {name: {} for name in SESSION_LISTS},
            "more": dict.fromkeys(SESSION_LISTS, 0),
            "hours": {},
        }

    def _try(self, one: StoredInput, place: int) -> bool:
        try:
            picture = self.loaded.read(one)
        except BadInput:
            return False
        trial = try_out(picture, self.edit)
        if trial.same:
            return True
        lists = impact(trial)
        self.state["changed"] += any(lists.values())
        for name in SESSION_LISTS:
            self._note(name, lists[name], one)
        self._add_hours(trial, self.state["seconds"][place] / 3600)
        return True

    def _key(self, row: Row) -> str:
        return row.get("gang") or f"{row['queue']} {row['resource']}"

    def _note(self, name: str, rows: list[Row], one: StoredInput) -> None:
        known = self.state["rows"][name]
        for row in rows:
            key = self._key(row)
            if key in known:
                known[key]["sessions"] += 1
            elif len(known) < MOST_NAMES:
                known[key] = {**row, "sessions": 1, "first_session": one.number, "first_at": one.now.isoformat()}
            else:
                self.state["more"][name] += 1

    def _add_hours(self, trial: Trial, hours: float) -> None:
        for queue, card, (gained, lost, over) in card_use(trial):
            known = (
                self.state["hours"].setdefault(card, {}).setdefault(queue, {"gained": 0.0, "lost": 0.0, "over": 0.0})
            )
            for name, milli in (("gained", gained), ("lost", lost), ("over", over)):
                known[name] += milli / 1000 * hours

    def _result(self) -> Row:
        rows = {name: sorted(known.values(), key=often) for name, known in self.state["rows"].items()}
        return {
            "version": 2,
            **cut(rows),
            "sessions": {
                "recorded": self.state["recorded"],
                "tried": len(self.state["sessions"]) - self.state["missing"],
                "changed": self.state["changed"],
                "missing": self.state["missing"],
                "sampled": self.state["recorded"] > len(self.state["sessions"]),
                "from": self.state["from"],
                "to": self.state["to"],
            },
            "more": {name: times for name, times in self.state["more"].items() if times},
            "card_hours": _rounded(self.state["hours"]),
            "flood": None,
            "reclaimed_at_flood": [],
            "spared_at_flood": [],
            "pending": [],
        }


def often(row: Row) -> tuple[int, str, str]:
    return -row["sessions"], row["queue"], row.get("gang", "")


def _rounded(hours: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Row:
    return {
        card: {queue: {name: round(value, 3) for name, value in sums.items()} for queue, sums in sorted(queues.items())}
        for card, queues in sorted(hours.items())
    }
