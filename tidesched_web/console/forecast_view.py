import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.changes.forecast_selectors import Record, ShownForecast
from tidesched_web.console import amounts
from tidesched_web.console.reason_words import reason_detail, reason_sentence

EXPECTS: dict[str, Promise] = {
    "run": gettext_lazy("runs at once"),
    "grow": gettext_lazy("runs with more pods"),
    "promised": gettext_lazy("gets cards that are being taken back"),
    "admitted": gettext_lazy("is admitted, and waits for cards"),
    "lose": gettext_lazy("loses its place"),
    "reclaimed": gettext_lazy("is reclaimed"),
}
_LOOKS: dict[str, tuple[Promise, str, str]] = {
    "open": (gettext_lazy("not yet"), "hourglass", "waiting"),
    "held": (gettext_lazy("came"), "circle-check", "good"),
    "missed": (gettext_lazy("did not come"), "circle-x", "failed"),
    "late": (gettext_lazy("came too late"), "clock", "failed"),
    "kept": (gettext_lazy("kept its place"), "circle-x", "failed"),
    "gone": (gettext_lazy("left the cluster before"), "logout", "quiet"),
    "overtaken": (gettext_lazy("cannot be judged"), "arrows-exchange", "quiet"),
}


@dataclass(frozen=True, slots=True)
class Line:
    gang: str
    queue: str
    expects: str
    word: str
    icon: str
    tone: str
    session: int | None
    at: dt.datetime | None
    why: str


@dataclass(frozen=True, slots=True)
class ForecastView:
    line: str
    rows: list[Line]
    hidden: int
    counted: bool
    following: bool


def forecast_view(shown: ShownForecast) -> ForecastView:
    rows = [_line(row) for row in shown.rows]
    held = sum(row["outcome"] in ("held", "overtaken") and row["at"] is not None for row in shown.rows)
    said = ngettext("%(held)s of %(n)s came", "%(held)s of %(n)s came", len(rows)) % {
        "held": amounts.number(held),
        "n": amounts.number(len(rows)),
    }
    following = shown.forecast.state == "following"
    looked = ngettext("%(n)s session after it", "%(n)s sessions after it", shown.forecast.sessions)
    line = _("%(said)s; %(looked)s.") % {
        "said": said,
        "looked": looked % {"n": amounts.number(shown.forecast.sessions)},
    }
    return ForecastView(line, rows, shown.hidden, shown.forecast.counted, following)


def _line(row: Mapping[str, Any]) -> Line:
    look, late = row["outcome"], bool(row["at"])
    if look == "missed" and (row["expects"] == "lose" or (row["expects"] == "reclaimed" and not late)):
        look = "kept"
    word, icon, tone = _LOOKS["late" if look == "missed" and late else look]
    why = row.get("why") or {}
    if change := (why.get("numbers") or {}).get("change"):
        text = _("change %(n)s was written meanwhile") % {"n": change}
    elif why.get("code"):
        text = reason_detail(why["code"], why["message"]) or reason_sentence(why["code"], why["numbers"])
    else:
        text = ""
    at = dt.datetime.fromisoformat(row["at"]) if row["at"] else None
    return Line(
        row["gang"], row["queue"], str(EXPECTS[row["expects"]]), str(word), icon, tone, row["session"], at, text
    )


def record_line(record: Record) -> str:
    if not record.expected:
        return ""
    parts = [
        _("%(what)s: %(held)s of %(n)s")
        % {"what": EXPECTS[kind], "held": amounts.number(held), "n": amounts.number(expected)}
        for kind, (expected, held) in record.kinds.items()
    ]
    line = ngettext(
        "What was expected of the last change came in %(percent)s %% (%(parts)s).",
        "What was expected of the last %(n)s changes came in %(percent)s %% (%(parts)s).",
        record.changes,
    )
    percent = amounts.number(round(100 * record.held / record.expected, 1))
    return line % {"n": amounts.number(record.changes), "percent": percent, "parts": " · ".join(parts)}
