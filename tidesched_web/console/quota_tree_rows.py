from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from tidesched_web.common.ceiling import ceiling
from tidesched_web.common.models import ServiceType
from tidesched_web.console import bars
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import card_quota_of, effective_quota_of
from tidesched_web.scheduling.selectors import waiting_cards_of
from tidesched_web.scheduling.tree_selectors import Place, TreeSums
from tidesched_web.scheduling.usage_selectors import CardTotals, borrowed

CardMap = dict[str, int]


@dataclass(slots=True)
class CardLine:
    """One card type of one row; cards as counts, use in milli-cards. ``limit`` None = no limit of its own."""

    card: str
    limit: int | None
    given: int | None
    allocated: int
    inqueue: int
    waiting: int
    borrowed: int
    service_type: str
    # The base, where tide plans make another quota of it: a queue's own, above the queues the sum that is assigned.
    base: int | None = None

    @property
    def bar(self) -> bars.UsageBar:
        quota = self.limit if self.limit is not None else self.given or 0
        return bars.queue_bar(
            self.service_type, quota * 1000, self.allocated, self.inqueue, waiting=self.waiting, borrowed=self.borrowed
        )

    @property
    def over(self) -> bool:
        return self.given is not None and self.limit is not None and self.given > self.limit

    @property
    def idle(self) -> bool:
        return bool(self.limit) and not (self.allocated or self.inqueue or self.waiting)


@dataclass(slots=True)
class Row:
    key: str
    parent: str
    level: int
    kind: str
    service_type: str
    name: str
    title: str
    lines: list[CardLine] = field(default_factory=list)
    queues: int = 0
    starved: int = 0
    branch: str = ""
    opened: bool = False
    queue: Queue | None = None
    # In how many card types more is assigned than there is, and how many card types are left out.
    over: int = 0
    more: int = 0

    @property
    def unused(self) -> bool:
        return any(line.limit for line in self.lines) and not any(
            line.allocated or line.inqueue or line.waiting for line in self.lines
        )


@dataclass(slots=True)
class _Sums:
    queues: int = 0
    starved: int = 0
    quota: CardMap = field(default_factory=lambda: defaultdict(int))
    base: CardMap = field(default_factory=lambda: defaultdict(int))
    allocated: CardMap = field(default_factory=lambda: defaultdict(int))
    inqueue: CardMap = field(default_factory=lambda: defaultdict(int))
    waiting: CardMap = field(default_factory=lambda: defaultdict(int))

    def add(self, other: _Sums) -> None:
        self.queues += other.queues
        self.starved += other.starved
        for name in ("quota", "base", "allocated", "inqueue", "waiting"):
            own = getattr(self, name)
            for card, figure in getattr(other, name).items():
                own[card] += figure


def place_of(queue: Queue) -> Place:
    project = queue.project_id or 0
    return Place(queue.service_type, queue.tenant_id or 0, project, 0 if project else queue.business_line_id or 0)


def key_of(place: Place) -> str:
    return f"{place.service_type}-p{place.project}" if place.project else f"{place.service_type}-l{place.line}"


def is_starved(queue: Queue) -> bool:
    quota = effective_quota_of(queue)
    used = {row["card"]: row["allocated"] for row in queue.usage_rows}  # type: ignore[attr-defined]
    return any(used.get(card, 0) < quota.get(card, 0) * 1000 for card in waiting_cards_of(queue))


def queue_row(queue: Queue, totals: Mapping[str, CardTotals], card: str = "") -> Row:
    place = place_of(queue)
    usage = {row["card"]: row for row in queue.usage_rows}  # type: ignore[attr-defined]
    base, quota, waits = card_quota_of(queue), effective_quota_of(queue), waiting_cards_of(queue)
    row = Row(
        key=f"{place.service_type}-q{queue.pk}",
        parent=key_of(place),
        level=4,
        kind="queue",
        service_type=queue.service_type,
        name=queue.name,
        title=queue.name,
        queues=1,
        starved=int(is_starved(queue)),
        queue=queue,
    )
    for name in sorted({*usage, *quota, *waits}):
        used = usage.get(name, {"allocated": 0, "inqueue": 0})
        figures = (quota.get(name, 0), used["allocated"], used["inqueue"], round(1000 * waits.get(name, 0)))
        if (any(figures) or name in queue.tide) and card in ("", name):
            line = _line(queue.service_type, name, figures[0], None, *figures[1:], totals=totals)
            row.lines.append(replace(line, base=base.get(name, 0)) if name in queue.tide else line)
    return row


def _line(
    service_type: str,
    card: str,
    limit: int | None,
    given: int | None,
    allocated: int,
    inqueue: int,
    waiting: int,
    *,
    totals: Mapping[str, CardTotals],
) -> CardLine:
    total = totals.get(card)
    lent = borrowed(allocated, total) if total and service_type == ServiceType.TRAINING else 0
    return CardLine(card, limit, given, allocated, inqueue, waiting, lent, service_type)


@dataclass(frozen=True, slots=True)
class Shown:
    card: str = ""
    service_type: str = ""
    ratios: Mapping[str, float] = field(default_factory=dict)
    # So many card types of a row at most (0 = all), and whether places are drawn at all: a large tree opens them later.
    most: int = 0
    places: bool = True
    # Whose hardware the roots are measured against: only who sees every tenant may see that sum.
    whole: bool = True


def tree_rows(sums: TreeSums, queues: Iterable[Queue], shown: Shown, *, with_queues: bool) -> list[Row]:
    below: dict[str, list[Queue]] = defaultdict(list)
    own: dict[Place, _Sums] = {}
    for place, totals in sums.places.items():
        own[place] = _Sums(
            totals.queues,
            quota=_added(totals.quota, totals.turned),
            base=defaultdict(int, totals.quota),
            allocated=defaultdict(int, totals.allocated),
            inqueue=defaultdict(int, totals.inqueue),
        )
    for queue in queues:
        place = place_of(queue)
        below[key_of(place)].append(queue)
        place_sums = own.setdefault(place, _Sums())
        place_sums.starved += is_starved(queue)
        for card, number in waiting_cards_of(queue).items():
            place_sums.waiting[card] += round(1000 * number)
    rows: list[Row] = []
    for service in ServiceType.values:
        if shown.service_type in ("", service):
            rows += _service_rows(service, sums, own, below, shown, with_queues=with_queues)
    return rows


def _added(base: Mapping[str, int], turned: Mapping[str, int]) -> CardMap:
    found = defaultdict(int, base)
    for card, figure in turned.items():
        found[card] += figure
    return found


@dataclass(slots=True)
class _Claims:
    now: CardMap = field(default_factory=lambda: defaultdict(int))
    base: CardMap = field(default_factory=lambda: defaultdict(int))

    def add(self, other: _Claims) -> None:
        for own, more in ((self.now, other.now), (self.base, other.base)):
            for card, figure in more.items():
                own[card] += figure


def _claims_of(limits: CardMap | None, below: _Claims) -> _Claims:
    """A row with a limit claims the limit; one without claims what stands below it."""
    return below if limits is None else _Claims(limits, limits)


def _service_rows(
    service: str,
    sums: TreeSums,
    own: Mapping[Place, _Sums],
    below: Mapping[str, list[Queue]],
    shown: Shown,
    *,
    with_queues: bool,
) -> list[Row]:
    places: dict[int, list[Place]] = defaultdict(list)
    for place in own:
        if place.service_type == service:
            places[place.tenant].append(place)
    for kind, pk in [key[1:] for key in sums.limits if key[0] == service]:
        tenant = pk if kind == "tenant" else sums.projects[pk][2]
        places.setdefault(tenant, [])
        if kind == "project" and all(place.project != pk for place in places[tenant]):
            places[tenant].append(Place(service, tenant, project=pk))
    root_sums = _Sums()
    root_claims = _Claims()
    children: list[Row] = []
    for tenant in sorted(places, key=lambda pk: (pk == 0, sums.tenants.get(pk, ("", ""))[0])):
        rows, tenant_sums, claims = _tenant_rows(
            service, tenant, places[tenant], sums, own, below, shown, with_queues=with_queues
        )
        children += rows
        root_sums.add(tenant_sums)
        root_claims.add(claims)
    ratio = shown.ratios.get(service, 1.0)
    limits = {card: ceiling(number, ratio) for card, number in sums.hardware.items()} if shown.whole else None
    root = Row(service, "", 1, "service", service, service, str(ServiceType(service).label), opened=True)
    _fill(root, root_sums, limits, root_claims, sums, shown)
    return [root, *children] if children or root.lines else []


def _tenant_rows(
    service: str,
    tenant: int,
    places: list[Place],
    sums: TreeSums,
    own: Mapping[Place, _Sums],
    below: Mapping[str, list[Queue]],
    shown: Shown,
    *,
    with_queues: bool,
) -> tuple[list[Row], _Sums, _Claims]:
    slug, name = sums.tenants.get(tenant, ("", _("the platform")))
    row = Row(f"{service}-t{tenant}", service, 2, "tenant", service, slug, name, opened=with_queues)
    row.branch = f"service_type={service}&tenant={tenant}"
    total = _Sums()
    claims = _Claims()
    rows = []
    for place in sorted(places, key=lambda place: _names(place, sums)):
        place_sums = own.get(place, _Sums())
        total.add(place_sums)
        slug, name = _names(place, sums)
        kind = "project" if place.project else "line"
        child = Row(key_of(place), row.key, 3, kind, service, slug, name, opened=with_queues)
        child.branch = f"{row.branch}&{kind}={place.project or place.line}"
        limits = sums.limits.get((service, "project", place.project)) if place.project else None
        of_queues = _Claims(place_sums.quota, place_sums.base)
        _fill(child, place_sums, limits, of_queues, sums, shown)
        # A project without a limit, and every business line, claims what its queues have.
        claims.add(_claims_of(limits, of_queues))
        rows.append(child)
        if with_queues:
            rows += [queue_row(queue, sums.totals, shown.card) for queue in below.get(child.key, ())]
    limits = sums.limits.get((service, "tenant", tenant)) if tenant else None
    _fill(row, total, limits, claims, sums, shown)
    return [row, *rows], total, _claims_of(limits, claims)


def _names(place: Place, sums: TreeSums) -> tuple[str, str]:
    if place.project:
        return sums.projects[place.project][:2]
    return sums.lines.get(place.line, ("", ""))


def _fill(
    row: Row, found: _Sums, limits: Mapping[str, int] | None, claims: _Claims, sums: TreeSums, shown: Shown
) -> None:
    row.queues, row.starved = found.queues, found.starved
    if row.level == 3 and not shown.places:
        return
    chosen = []
    for card in sorted({*(limits or ()), *claims.now, *found.allocated, *found.waiting}):
        limit = None if limits is None else limits.get(card, 0 if row.level > 1 else None)
        figures = (found.allocated.get(card, 0), found.inqueue.get(card, 0), found.waiting.get(card, 0))
        given, base = claims.now.get(card, 0), claims.base.get(card, 0)
        if (limit or given or base or any(figures)) and shown.card in ("", card):
            over = limit is not None and given > limit
            row.over += over
            chosen.append((card, limit, given, figures, over))
    if shown.most and len(chosen) > shown.most:
        kept = sorted(chosen, key=lambda entry: (-entry[4], -max(entry[1] or 0, entry[2]), entry[0]))[: shown.most]
        row.more, chosen = len(chosen) - shown.most, sorted(kept)
    for card, limit, given, figures, _over in chosen:
        line = _line(row.service_type, card, limit, given, *figures, totals=sums.totals)
        base = claims.base.get(card, 0)
        row.lines.append(line if base == given else replace(line, base=base))


def pruned(rows: list[Row], wanted: Callable[[Row], bool]) -> list[Row]:
    kept: set[str] = set()
    for row in reversed(rows):
        if row.key in kept or wanted(row):
            kept |= {row.key, row.parent}
    return [row for row in rows if row.key in kept]
