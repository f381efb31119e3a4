import datetime as dt
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.console import reason_words, remedy_words, resource_words, rule_words
from tidesched_web.console.rights import manages
from tidesched_web.engine.model import BEHIND_A_PROMISE, ENDED_BY_CARDS, ENDED_BY_QUOTA
from tidesched_web.scheduling.holds import SendingStop
from tidesched_web.workloads.models import Gang, GangState
from tidesched_web.workloads.remedies import remedy_of
from tidesched_web.workloads.selectors import holding_gangs, visible_gang_keys
from tidesched_web.workloads.sight import shown_reason, shown_remedy

# So many holders a session names of a gang that waits; what it waits for may be no card.
MOST_HOLDERS = 10
NOT_CARDS = ("", "cpu", "memory", "pods")


@dataclass(frozen=True, slots=True)
class HolderRow:
    """Without a name when it is another tenant's; ``since``: it holds a promise since then and does not run."""

    gang: str
    queue: str
    amount: str
    since: dt.datetime | None = None
    pk: int = 0


@dataclass(frozen=True, slots=True)
class AllHolders:
    query: str
    more: int = 0


@dataclass(frozen=True, slots=True)
class RemedyView:
    sentence: str
    at: dt.datetime | None = None
    session: int | None = None
    until: dt.datetime | None = None
    until_why: str = ""
    helps: bool = False
    tryable: bool = False
    gang: str = ""
    pending: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    title: str
    sentence: str
    figures: list[tuple[str, str]]
    holders: list[HolderRow]
    refusals: list[tuple[str, int]]
    too_large: list[str]
    remedy: RemedyView | None
    # Queues that its namespace may use, where the one that it names cannot be used; the likeliest one first.
    granted: list[str]
    meant: str
    may: tuple[str, ...] = ()


def shown_numbers(access: Access, gang: Gang) -> tuple[Mapping[str, Any], str]:
    own_queue = getattr(gang, "own_queue", True)
    numbers, message = gang.reason_numbers or {}, gang.reason_message
    if not own_queue:
        return shown_reason(gang.reason_code, numbers, message, own_queue=False, queue_names=())
    return reason_words.own_numbers(access, numbers), message


def held_back(gang: Gang, stop: SendingStop | None) -> bool:
    if stop is None or gang.state not in (GangState.WAITING, GangState.ADMITTED):
        return False
    without_pods = gang.reason_code == "GangIncomplete" and gang.state == GangState.WAITING and gang.owner_kind != ""
    return not gang.reason_code or without_pods


def why_title(gang: Gang, stop: SendingStop | None) -> str:
    return _("Sending stopped") if held_back(gang, stop) else str(reason_words.reason_title(gang.reason_code))


def why_sentence(access: Access, gang: Gang, stop: SendingStop | None) -> str:
    if held_back(gang, stop):
        if not gang.reason_code:
            return _("A session would start it, but nothing is sent to the cluster.")
        return _("A session would admit it, but nothing is sent to the cluster: its pods are made after its admission.")
    numbers, message = shown_numbers(access, gang)
    return reason_words.reason_detail(gang.reason_code, message) or reason_words.reason_sentence(
        gang.reason_code, numbers
    )


class RemedyLine(NamedTuple):
    sentence: str
    session: int
    at: dt.datetime


def remedy_line(gang: Gang, seen: set[tuple[int, str]] | None) -> RemedyLine | None:
    found = remedy_of(gang, timezone.now()) if getattr(gang, "own_queue", True) else None
    if found is None or not found.remedy:
        return None
    remedy = found.remedy
    if seen is not None and remedy.get("gang") and (gang.cluster_id, remedy["gang"]) not in seen:
        remedy = {**remedy, "gang": None}
    sentence = remedy_words.remedy_sentence(remedy, admitted=not found.starts, more=_more_pods(gang))
    return RemedyLine(sentence, found.number, found.at)


def gangs_in_remedies(access: Access, cluster_id: int, gangs: list[Gang]) -> set[tuple[int, str]] | None:
    if access.everything:
        return None
    remedies = [gang.worked_out.remedy or {} for gang in gangs if hasattr(gang, "worked_out")]
    names = {remedy["gang"] for remedy in remedies if remedy.get("gang")}
    return visible_gang_keys(access, [cluster_id], names) if names else set()


def why(access: Access, gang: Gang, stop: SendingStop | None) -> Why:
    own_queue = getattr(gang, "own_queue", True)
    numbers: Mapping[str, Any] = gang.reason_numbers or {}
    if not own_queue:
        numbers, _message = shown_numbers(access, gang)
    resource = numbers.get("resource")
    figures = [
        (word, resource_words.resource_amount(resource, numbers[name]) if name != "position" else str(numbers[name]))
        for name, word in _figure_words(gang.reason_code)
        if numbers.get(name) is not None
    ]
    found = remedy_of(gang, timezone.now()) if own_queue else None
    held = numbers.get("holders") or []
    named = {holder["gang"] for holder in held}
    if found is not None and found.remedy and found.remedy.get("gang"):
        named.add(found.remedy["gang"])
    if found is not None and found.goes_first:
        named.add(found.goes_first)
    seen = visible_gang_keys(access, [gang.cluster_id], named) if named and not access.everything else None
    holders = [_holder(gang.cluster_id, resource, holder, seen) for holder in held]
    if held_back(gang, stop):
        return Why(why_title(gang, stop), why_sentence(access, gang, stop), [], [], [], [], None, [], "")
    sentence = why_sentence(access, gang, stop)
    if holders and holders[0].gang and own_queue:
        # The largest holder is named only to a reader who may see it.
        detail = reason_words.reason_detail(gang.reason_code, gang.reason_message)
        sentence = detail or reason_words.reason_sentence(gang.reason_code, numbers)
    misdirected = gang.queue_id is None or gang.reason_code == "NotAllowedInQueue"
    granted = list(getattr(gang, "granted", ())) if misdirected else []
    near = difflib.get_close_matches(gang.queue_name, granted, n=1)
    return Why(
        why_title(gang, stop),
        sentence,
        figures,
        [*holders, *(row for row in (_promises(gang, resource) if own_queue else ()) if row.gang not in named)],
        rule_words.node_refusals(numbers),
        [_too_large(row) for row in found.too_large] if found is not None else [],
        _remedy(access, gang, found, seen) if own_queue else None,
        granted,
        near[0] if near else "",
        _may(access, gang, holders, found.remedy if found is not None else None) if own_queue else (),
    )


def _may(access: Access, gang: Gang, holders: list[HolderRow], remedy: Mapping[str, Any] | None) -> tuple[str, ...]:
    queue = gang.queue if gang.queue_id else None
    if access.administers or queue is None or not manages(access, queue.tenant_id):
        return ()
    lines = []
    # Only the end that a trial has shown to help is worth a word.
    ends = remedy.get("gang") if remedy and remedy["change"] == "gang_ends" else None
    own = next((row for row in holders if ends and row.gang == ends), None)
    if own is not None and gang.reason_code in ENDED_BY_QUOTA | ENDED_BY_CARDS:
        said = _(
            "A gang of yours holds what it waits for: %(gang)s (%(amount)s). You may end it where it was submitted."
        )
        lines.append(said % {"gang": own.gang, "amount": own.amount})
    if gang.reason_code in ENDED_BY_QUOTA:
        said = _(
            "You may raise the quota of queue %(queue)s as far as your tenant has room. Beyond that, raise your tenant "
            "in the editor too: that asks a platform admin for it."
        )
        lines.append(said % {"queue": gang.queue_name})
    elif gang.reason_code == "Fragmented":
        lines.append(
            _(
                "The quota is no obstacle: enough cards are free, but scattered over nodes where its pods do not fit. "
                "Pods with fewer cards each would fit sooner."
            )
        )
    elif gang.reason_code in ENDED_BY_CARDS:
        lines.append(
            _("The quota is no obstacle: the cards are in use. Ask a platform admin if your tenant needs more of them.")
        )
    return tuple(lines)


def all_holders(access: Access, cluster: Cluster, gang: Gang) -> AllHolders | None:
    numbers = gang.reason_numbers or {}
    resource, named = numbers.get("resource") or "", len(numbers.get("holders") or ())
    own_queue = getattr(gang, "own_queue", True)
    if named < MOST_HOLDERS or "|" in resource or resource in NOT_CARDS or not own_queue:
        return None
    queue = gang.queue_name if gang.reason_code in ENDED_BY_QUOTA else ""
    asked = {"queue": queue, "card": resource} if queue else {"card": resource, "state": GangState.RUNNING.value}
    more = 0
    if access.everything or queue:
        more = max(0, holding_gangs(access, cluster, resource, queue).exclude(pk=gang.pk).count() - named)
    return AllHolders(urlencode(asked), more)


def together(gang: Gang, pods: Iterable[Mapping[str, Any]]) -> str:
    """Free cards that are scattered are not enough for a pod, although their number is."""
    resource = (gang.reason_numbers or {}).get("resource") or ""
    if not gang.needs or gang.reason_code not in ENDED_BY_CARDS or not resource:
        return ""
    wanted = set(resource.split("|"))
    sizes = {pod["card_milli"] for pod in pods if pod["card_milli"] and wanted & set(pod["card"].split("|"))}
    if len(sizes) != 1 or (size := sizes.pop()) <= 1000:
        return ""
    return _("Each of its pods needs %(amount)s free on one node; cards on several nodes do not add up for it.") % {
        "amount": resource_words.counted(resource, size / 1000)
    }


def _figure_words(code: str) -> list[tuple[str, str]]:
    words = reason_words.FIGURES | ({"limit": reason_words.LIMITS[code]} if code in reason_words.LIMITS else {})
    words |= {"short": reason_words.SHORT[code]} if code in reason_words.SHORT else {}
    return [(name, str(word)) for name, word in words.items()]


def _more_pods(gang: Gang) -> int:
    return max(1, gang.replicas - gang.ready) if gang.state == GangState.RUNNING else 0


def _holder(
    cluster_id: int, resource: str | None, held: Mapping[str, Any], seen: set[tuple[int, str]] | None
) -> HolderRow:
    amount = resource_words.resource_amount(resource, held.get("amount"))
    promised = held.get("promised_since")
    since = dt.datetime.fromisoformat(promised) if promised is not None else None
    if seen is None or (cluster_id, held["gang"]) in seen:
        return HolderRow(held["gang"], held.get("queue", ""), amount, since)
    return HolderRow("", "", amount, since)


def _promises(gang: Gang, resource: str | None) -> list[HolderRow]:
    if gang.reason_code not in BEHIND_A_PROMISE or not resource:
        return []
    wanted = set(resource.split("|"))
    rows = []
    for row in getattr(gang, "promise_rows", ()):
        amount = sum(count for name, count in row["cards"].items() if wanted & set(name.split("|")))
        if amount:
            since = dt.datetime.fromisoformat(row["since"])
            rows.append(
                HolderRow(
                    f"{row['namespace']}/{row['name']}",
                    row["queue"],
                    resource_words.resource_amount(resource, amount),
                    since,
                    row["id"],
                )
            )
    return rows


def _too_large(row: Mapping[str, Any]) -> str:
    return _("Each pod asks for %(asked)s; the largest node has %(largest)s.") % {
        "asked": resource_words.counted(row["resource"], row["asked"]),
        "largest": resource_words.resource_amount(row["resource"], row["largest"]),
    }


def _remedy(access: Access, gang: Gang, found: Any, seen: set[tuple[int, str]] | None) -> RemedyView | None:
    if found is None:
        if not remedy_words.no_remedy_sentence(gang.reason_code, {}):
            return None
        if getattr(gang, "worked_out", None) is None:
            return RemedyView(_("What would help is being worked out."), pending=True)
        said = _("What would help is being worked out again: the last answer was to other figures, or is too old.")
        return RemedyView(said, pending=True)
    facts = {"at": found.at, "session": found.number}
    if not found.remedy:
        # With the figures of the session that is named with it, not with those that stand above it.
        numbers = found.numbers or gang.reason_numbers or {}
        sentence = remedy_words.no_remedy_sentence(gang.reason_code, numbers, gang.queue_name)
        if not sentence and found.until is None:
            return None
        named = seen is None or (gang.cluster_id, found.goes_first) in seen
        notes = remedy_words.in_the_way(
            gang.reason_code,
            numbers,
            services=found.held_by_services,
            first=found.goes_first if named else "",
            waits_first=bool(found.goes_first),
        )
        return RemedyView(sentence, until=found.until, until_why=found.until_why, notes=tuple(notes), **facts)
    remedy = found.remedy
    if seen is not None:
        names = None if access.everything else {gang.queue_name}
        remedy = shown_remedy(remedy, gang.cluster_id, names, seen)
    tenant = gang.queue.tenant_id if gang.queue_id and gang.queue else None
    return RemedyView(
        remedy_words.remedy_sentence(remedy, admitted=not found.starts, more=_more_pods(gang)),
        helps=True,
        tryable=remedy["change"] == "quota" and gang.queue_id is not None and manages(access, tenant),
        gang=remedy.get("gang") or "",
        **facts,
    )
