"""Why nothing is sent to a cluster, in words: what stopped it, since when, and what a person can do about it."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.console import amounts
from tidesched_web.console.hold_words import HOLDS
from tidesched_web.scheduling.holds import Hold, SendingStop, sending_stop

# What sets the cluster going again: for platform admins, and for everybody else.
_NEXT: dict[Hold, tuple[Promise, Promise]] = {
    Hold.PAUSED: (gettext_lazy("Resume"), gettext_lazy("A platform admin resumes it.")),
    Hold.GUARD: (
        gettext_lazy("Review and release"),
        gettext_lazy("A platform admin reviews what would be evicted and releases it."),
    ),
    Hold.POLICY_UNRELEASED: (
        gettext_lazy("Review and release"),
        gettext_lazy("A platform admin reviews what the policy would do and releases it."),
    ),
    Hold.FOREIGN: (
        gettext_lazy("Look at it"),
        gettext_lazy("It goes on by itself once the other installation no longer holds the cluster's lease."),
    ),
}


@dataclass(frozen=True, slots=True)
class StopWords:
    title: str
    text: str
    since: dt.datetime | None
    url: str
    button: str


def stop_words(cluster: Cluster, access: Access) -> StopWords | None:
    """The banner of a cluster to which nothing is sent; None in normal work. Names and figures are not for tenants."""
    stop = sending_stop(cluster)
    if stop is None:
        return None
    act, others = _NEXT[stop.code]
    url = _url(cluster, stop, access)
    sentences = [_reason(stop, access), _("Sessions go on deciding, but no gang is started and none is evicted.")]
    if not access.administers or stop.code is Hold.FOREIGN:
        sentences.append(str(others))
    button = str(act) if access.administers else _("Look at it")
    title = _("Sending to %(cluster)s is stopped.") % {"cluster": cluster.name}
    return StopWords(title, " ".join(sentences), stop.since, url, button if url else "")


def _reason(stop: SendingStop, access: Access) -> str:
    if stop.code is Hold.PAUSED:
        return _("Paused by %(who)s: “%(reason)s”") % {"who": stop.by, "reason": stop.reason}
    if stop.code is not Hold.GUARD:
        return str(HOLDS[stop.code])
    numbers: Any = stop.numbers
    words = str(HOLDS.get(str(numbers.get("rule", "")), HOLDS[Hold.GUARD]))
    if not access.everything or numbers.get("asked") is None or numbers.get("limit") is None:
        return words
    share = numbers.get("rule") == "share_of_training"
    asked, limit = (_figure(numbers[name], share=share) for name in ("asked", "limit"))
    return words + " " + _("It asked for %(asked)s; the limit is %(limit)s.") % {"asked": asked, "limit": limit}


def _figure(value: float, *, share: bool) -> str:
    return f"{amounts.number(round(100 * value))} %" if share else amounts.number(value)


def _url(cluster: Cluster, stop: SendingStop, access: Access) -> str:
    if stop.code is Hold.PAUSED:
        return reverse("console:pause", args=[cluster.slug]) if access.administers else ""
    if stop.code is Hold.POLICY_UNRELEASED:
        return reverse("console:policy", args=[cluster.slug]) if access.everything else ""
    if stop.code is Hold.GUARD and stop.session is not None:
        return reverse("console:session", args=[cluster.slug, stop.session])
    return reverse("console:alerts", args=[cluster.slug])
