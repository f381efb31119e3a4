from dataclasses import replace

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.console import amounts
from tidesched_web.console.chart import Chart, Twin, answer
from tidesched_web.console.export import csv_list
from tidesched_web.console.figures import quota_map
from tidesched_web.console.forms.quota import TreeFilter
from tidesched_web.console.page import Page, page
from tidesched_web.console.quota_tree_rows import Row, Shown, pruned, tree_rows
from tidesched_web.console.rights import writes
from tidesched_web.scheduling.tree_selectors import (
    Place,
    TreeSums,
    has_waiting,
    named_like,
    of_place,
    of_tenant,
    tree_queues,
    tree_sums,
    uses_nothing,
)

# A tree of so many queues is shown open at once; beyond, each level is fetched when it is opened.
WHOLE = 80
# So many card types of a row are drawn in a tree that is not open at once, fewer where there are many tenants.
CARDS, BARS = 8, 240
# So many queues stand below one place before "show more".
STEP = 200


def _shown(this: Page, form: TreeFilter) -> Shown:
    cluster = this.cluster
    return Shown(
        card=form.value("card"),
        service_type=form.value("service_type"),
        ratios={
            ServiceType.INFERENCE.value: float(cluster.overcommit_inference),
            ServiceType.TRAINING.value: float(cluster.overcommit_training),
        },
        whole=this.access.everything,
    )


def _cards(sums: TreeSums) -> list[str]:
    promised = {card for limits in sums.limits.values() for card in limits}
    return sorted({*sums.hardware, *promised, *(card for place in sums.places.values() for card in place.quota)})


def _rows(this: Page, sums: TreeSums, form: TreeFilter, *, everything: bool) -> tuple[list[Row], bool]:
    text, badge = form.value("q"), form.value("badge")
    queues = tree_queues(this.access, this.cluster)
    with_queues = everything or bool(text) or badge in ("starved", "unused")
    if not everything:
        wanted = has_waiting()
        if text:
            wanted = named_like(text) | wanted
        elif badge == "unused":
            wanted = uses_nothing() | wanted
        queues = queues.filter(wanted)[: 4 * STEP]
    found = list(queues)
    shown = _shown(this, form)
    if not with_queues:
        most = max(3, min(CARDS, BARS // (1 + len(sums.tenants))))
        shown = replace(shown, most=most, places=badge == "over")
    rows = tree_rows(sums, found, shown, with_queues=with_queues)
    if text or badge or shown.card:
        low = text.casefold()

        def wanted_row(row: Row) -> bool:
            if shown.card and not row.lines:
                return False
            if low and low not in row.name.casefold() and low not in row.title.casefold():
                return False
            return row.kind != "service" and (
                not badge
                or (badge == "over" and row.over > 0)
                or (badge == "starved" and row.kind == "queue" and row.starved > 0)
                or (badge == "unused" and row.kind == "queue" and row.unused)
            )

        roots_over = [row.key for row in rows if row.kind == "service" and badge == "over" and row.over]
        rows = pruned(rows, lambda row: wanted_row(row) or row.key in roots_over)
    if not with_queues:
        rows = [row for row in rows if row.level < 3 or badge == "over"]
    return rows, not everything and len(found) == 4 * STEP


@page(section="quota", topics="sessions queues usage")
def tree(this: Page) -> HttpResponse:
    cluster = this.cluster
    sums = tree_sums(this.access, cluster)
    form = TreeFilter(this.request.GET, _cards(sums))
    if this.request.GET.get("view") == "map":
        return this.render(
            "quota/map.html",
            {
                "form": form,
                "chart": _chart(this, form, _cards(sums)),
                "line": _line([], sums),
                "may_edit": writes(this.access),
            },
        )
    export = this.request.GET.get("format") == "csv"
    rows, cut = _rows(this, sums, form, everything=export or sums.queues <= WHOLE)
    if export:
        return csv_list(
            f"quota-tree-{cluster.slug}",
            {
                "service_type": lambda pair: pair[0].service_type,
                "level": lambda pair: pair[0].kind,
                "name": lambda pair: pair[0].name,
                "below": lambda pair: pair[0].parent,
                "card": lambda pair: pair[1].card,
                "quota": lambda pair: "" if pair[1].limit is None else pair[1].limit,
                "assigned": lambda pair: "" if pair[1].given is None else pair[1].given,
                "base": lambda pair: "" if pair[1].base is None else pair[1].base,
                "allocated": lambda pair: pair[1].allocated / 1000,
                "inqueue": lambda pair: pair[1].inqueue / 1000,
                "borrowed": lambda pair: pair[1].borrowed / 1000,
                "waiting": lambda pair: pair[1].waiting / 1000,
            },
            ((row, line) for row in rows for line in row.lines),
        )
    if any(row.branch and not row.opened for row in rows):
        this.topics = ""  # an update would take away the levels that the reader has opened
    return this.render(
        "quota/tree.html",
        {
            "rows": rows,
            "form": form,
            "cut": cut,
            "line": _line(rows, sums),
            "narrowed": bool(form.chips()),
            "may_edit": writes(this.access),
        },
    )


def _line(rows: list[Row], sums: TreeSums) -> str:
    tenants = len(sums.tenants)
    line = _("%(queues)s of %(tenants)s") % {
        "queues": ngettext("%(n)s queue", "%(n)s queues", sums.queues) % {"n": amounts.number(sums.queues)},
        "tenants": ngettext("%(n)s tenant", "%(n)s tenants", tenants) % {"n": amounts.number(tenants)},
    }
    over = sum(row.over for row in rows)
    if over:
        line += " · " + ngettext(
            "%(n)s place assigns more than it has", "%(n)s places assign more than they have", over
        ) % {"n": amounts.number(over)}
    starved = sum(row.starved for row in rows if row.kind == "service")
    if starved:
        line += " · " + ngettext(
            "%(n)s queue waits although it is below its quota",
            "%(n)s queues wait although they are below their quota",
            starved,
        ) % {"n": amounts.number(starved)}
    return line


@page(section="quota")
def branch(this: Page) -> HttpResponse:
    sums = tree_sums(this.access, this.cluster)
    form = TreeFilter(this.request.GET, _cards(sums))
    tenant, project, line, after = (_number(this, name) for name in ("tenant", "project", "line", "after"))
    service = form.value("service_type")
    if service not in ServiceType.values or (tenant not in sums.tenants and (tenant or not this.access.everything)):
        raise Http404
    queues = tree_queues(this.access, this.cluster)
    more = 0
    if project or line:
        place = Place(service, tenant, project, line)
        found = list(of_place(queues, place)[after : after + STEP + 1])
        more = after + STEP if len(found) > STEP else 0
        rows = tree_rows(sums, found[:STEP], _shown(this, form), with_queues=True)
        kind = "p" if project else "l"
        parent = f"{service}-{kind}{project or line}"
        rows = [row for row in rows if row.kind == "queue" and row.parent == parent]
    else:
        count = sum(
            found.queues
            for place, found in sums.places.items()
            if (place.service_type, place.tenant) == (service, tenant)
        )
        whole = count <= WHOLE
        below = of_tenant(queues.filter(service_type=service), tenant)
        rows = tree_rows(
            sums, below if whole else below.filter(has_waiting())[: 4 * STEP], _shown(this, form), with_queues=whole
        )
        parent = f"{service}-t{tenant}"
        keys = {row.key for row in rows if row.parent == parent}
        rows = [row for row in rows if row.parent == parent or row.parent in keys]
    if form.value("card"):
        rows = [row for row in rows if row.lines]
    return this.render("quota/branch.html", {"rows": rows, "more": more, "parent": parent, "form": form})


def _number(this: Page, name: str) -> int:
    text = this.request.GET.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _chart(this: Page, form: TreeFilter, cards: list[str]) -> Chart:
    card = form.value("card") or (cards[0] if cards else "")
    return Chart(
        key="quota-map",
        question=_("Who has how much? Quota as areas: service type › tenant › project › queue"),
        url=reverse("console:quota_map", args=[this.cluster.slug]),
        query=f"card={card}" if card else "",
        size="tall",
        choices=[(name, card_label(name)) for name in cards] if len(cards) > 1 else [],
        choice=card,
        choice_label=_("Card type"),
    )


@page(section="quota")
def treemap(this: Page) -> HttpResponse:
    card = this.request.GET.get("card", "").replace("\0", "")[:200]

    def areas() -> list[quota_map.Area]:
        sums = tree_sums(this.access, this.cluster)
        rows = tree_rows(
            sums,
            tree_queues(this.access, this.cluster),
            Shown(card=card, whole=this.access.everything),
            with_queues=True,
        )
        return quota_map.areas(rows)

    def twin() -> Twin:
        header = [_("Place"), _("quota"), _("in use"), _("promised")]
        return Twin(
            f"quota-{card}",
            header,
            [(area.path, area.quota, area.used, area.promised) for area in areas() if area.leaf],
        )

    everything = "all" if this.access.everything else "-".join(map(str, sorted(this.access.tenant_ids)))
    key = f"quota-map:{this.cluster.pk}:{this.cluster.session_id}:{everything}:{card}"  # type: ignore[attr-defined]
    return answer(this.request, key=key, figure=lambda theme: quota_map.figure(areas(), theme), twin=twin)
