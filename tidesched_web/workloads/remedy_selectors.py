import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from django.db.models import Exists, Func, OuterRef, Q, QuerySet, TextField

from tidesched_web.workloads.models import TERMINAL_GANG_STATES, Gang, GangState
from tidesched_web.workloads.remedies import remedy_of

# An answer that holds is worked out again after so long.
RENEWED_AFTER = dt.timedelta(seconds=60)
# So many rows of each kind are looked at in one round, however many gangs wait.
MOST_ROWS = 200
_FIELDS = ("namespace", "name", "needs", "reason_code", "reason_numbers", "waiting_since", "submitted_at")


def with_remedies(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    """``named_holds``: whether the gang that its remedy names still holds cards; a later one of the name is another."""
    part = "split_part(%(expressions)s ->> 'gang', '/', {})".format
    namespace, name = (
        Func(OuterRef("worked_out__remedy"), template=part(number), output_field=TextField()) for number in (1, 2)
    )
    holds = Q(bound__gt=0) | Q(state=GangState.ADMITTED) | Q(phase="Inqueue")
    named = Gang.objects.filter(
        holds,
        cluster=OuterRef("cluster"),
        namespace=namespace,
        name=name,
        gone_at__isnull=True,
        submitted_at__lte=OuterRef("worked_out__at"),
    ).exclude(state__in=TERMINAL_GANG_STATES)
    return gangs.select_related("worked_out").annotate(named_holds=Exists(named.order_by()))


def due_gangs(cluster_id: int, now: dt.datetime, *, first: Sequence[int] = ()) -> list[Gang]:
    waiting = Gang.objects.filter(cluster_id=cluster_id, needs=True, gone_at__isnull=True).exclude(reason_code="")
    waiting = with_remedies(waiting).only(*_FIELDS, "worked_out")
    without = waiting.filter(worked_out__isnull=True)
    newest = list(without.order_by("-submitted_at", "-id")[:MOST_ROWS])
    longest = list(without.order_by("submitted_at", "id")[:MOST_ROWS])
    answered = list(waiting.filter(worked_out__isnull=False).order_by("worked_out__worked_out_at", "pk")[:MOST_ROWS])
    stale = [gang for gang in answered if remedy_of(gang, now) is None]
    stale.sort(key=lambda gang: (gang.submitted_at, gang.pk))
    old = [gang for gang in answered if now - gang.worked_out.worked_out_at >= RENEWED_AFTER]
    looked_at = [gang for gang in waiting.filter(pk__in=first) if remedy_of(gang, now) is None] if first else []
    found: dict[int, Gang] = {}
    for gang in (*looked_at, *_in_turn(newest, longest), *_in_turn(stale[::-1], stale), *old):
        found.setdefault(gang.pk, gang)
    return list(found.values())


def _in_turn(first: Sequence[Gang], second: Sequence[Gang]) -> Iterator[Gang]:
    """One of each while there are some: they were read one after the other, so that one list may be longer."""
    return (gang for pair in zip_longest(first, second) for gang in pair if gang is not None)
