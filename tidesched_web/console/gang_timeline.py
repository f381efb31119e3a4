import datetime as dt
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.common.permissions import Access
from tidesched_web.console import reason_words
from tidesched_web.console.states import look


def timeline(access: Access, rows: Iterable[dict[str, Any]], *, own_queue: bool = True) -> list[dict[str, Any]]:
    return [_step(access, row, own_queue) for row in rows]


def _step(access: Access, row: dict[str, Any], own_queue: bool) -> dict[str, Any]:
    detail = row["detail"]
    sentence = reason_words.reason_detail(detail.get("code", ""), detail.get("message", ""))
    if not sentence and detail.get("numbers"):
        numbers = reason_words.own_numbers(access, detail["numbers"]) if own_queue else {}
        sentence = reason_words.reason_sentence(detail["code"], numbers)
    if made_by := detail.get("made_by"):
        who = look("maker", made_by).word
        sentence = ngettext(
            "%(n)s pod of it was evicted. By: %(who)s.", "%(n)s pods of it were evicted. By: %(who)s.", detail["pods"]
        ) % {"n": detail["pods"], "who": who}
    elif detail.get("waits_no_more"):
        ready = ngettext("It has %(n)s pod and waits no more.", "It has %(n)s pods and waits no more.", detail["ready"])
        sentence = ready % {"n": detail["ready"]}
    elif row["kind"] == "reclaimed" and row["reclaim_id"]:
        sentence = _("Evicted by reclaim %(n)s.") % {"n": row["reclaim_id"]}
    word = look("step", row["kind"]).word
    return row | {"at": dt.datetime.fromisoformat(row["at"]), "word": word, "sentence": sentence}
