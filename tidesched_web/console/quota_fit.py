import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.console import amounts
from tidesched_web.quota.models import Queue
from tidesched_web.scheduling.usage_selectors import QuotaFit, quota_fits

SPAN = dt.timedelta(days=7)
ENOUGH_HOURS = 24
# At its limit in so many of the hours a quota was too small; with so little of it in use it was too large.
OFTEN, LITTLE = 0.1, 0.5


class Answer(NamedTuple):
    card: str
    verdict: str
    tone: str
    icon: str
    line: str


def answers(queue: Queue, quota: Mapping[str, int], now: dt.datetime) -> list[Answer]:
    fits = quota_fits(queue, now - SPAN)
    return [_answer(card, fits.get(card), cards) for card, cards in sorted(quota.items()) if cards]


def _answer(card: str, fit: QuotaFit | None, quota: int) -> Answer:
    hours = fit.hours if fit else 0
    said = ngettext("%(n)s hour", "%(n)s hours", hours) % {"n": amounts.number(hours)}
    if fit is None or hours < ENOUGH_HOURS:
        line = _("%(hours)s of the last week are measured; the answer needs %(n)s.")
        return Answer(card, _("Not known yet"), "quiet", "clock", line % {"hours": said, "n": ENOUGH_HOURS})
    line = _(
        "Of %(hours)s in the last week, 95 %% used at most %(p95)s cards, the highest use was %(most)s; %(limit)s."
    ) % {
        "hours": said,
        "p95": amounts.number(fit.p95 / 1000),
        "most": amounts.number(fit.most / 1000),
        "limit": ngettext("the quota was used up in %(n)s hour", "the quota was used up in %(n)s hours", fit.at_limit)
        % {"n": amounts.number(fit.at_limit)},
    }
    if fit.at_limit >= OFTEN * hours:
        return Answer(card, _("Often used up"), "waiting", "hourglass", line)
    if fit.p95 < LITTLE * quota:
        return Answer(card, _("More than half unused"), "quiet", "moon", line)
    return Answer(card, _("It fitted"), "good", "check", line)
