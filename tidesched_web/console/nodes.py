from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import orjson
from django import forms
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.clusters.models import says_not_ready
from tidesched_web.clusters.selectors import card_names, nodes_in_state, visible_nodes, with_troubles
from tidesched_web.common.physical import is_part, share_of_board
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.by_language import by_language
from tidesched_web.console.export import csv_list, plain_cards
from tidesched_web.console.forms.filters import CardFilterForm, some_or_any
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.workloads.selectors import HeldCard, free_milli, pods_on_nodes, with_free_cards

WHOLE = 1000
ROWS = 100
_ORDERS = {"": ("name", "id"), "free": ("-free", "name", "id"), "busy": ("free", "name", "id")}


class NodeFilter(CardFilterForm):
    q = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    card = forms.ChoiceField(label=gettext_lazy("Card type"))
    order = forms.ChoiceField(
        label=gettext_lazy("Order"),
        choices=[
            ("", gettext_lazy("by name")),
            ("free", gettext_lazy("most free cards first")),
            ("busy", gettext_lazy("fewest free cards first")),
        ],
    )
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=some_or_any(
            [
                ("ready", gettext_lazy("Ready")),
                ("not_ready", gettext_lazy("Not ready")),
                ("closed", gettext_lazy("Closed")),
            ]
        ),
    )

    def apply(self, nodes: Any) -> Any:
        if text := self.value("q"):
            nodes = nodes.filter(name__icontains=text)
        if card := self.value("card"):
            nodes = nodes.filter(cards__has_key=card)
        if state := self.value("state"):
            nodes = nodes_in_state(nodes, state)
        return nodes


@dataclass(slots=True)
class Slot:
    """One card of a node: its parts in milli-cards by what they are used for, and who holds it."""

    parts: list[tuple[str, int]] = field(default_factory=list)
    gangs: list[str] = field(default_factory=list)
    gang_id: int = 0
    leaving: bool = False

    @property
    def used(self) -> int:
        return sum(size for _kind, size in self.parts)

    def title(self) -> str:
        if not self.parts:
            return _("idle")
        text = listed(self.gangs)
        if self.used < WHOLE:
            text += f" ({amounts.number(self.used / WHOLE)})"
        return " · ".join([text, _("leaving")]) if self.leaving else text


def pieces(parts: Iterable[tuple[str, int]]) -> list[tuple[str, float, float]]:
    """(kind, top, height) in percent of the parts of a card, filled from below."""
    found: list[tuple[str, float, float]] = []
    level = 0.0
    for kind, size in parts:
        height = min(100 * size / WHOLE, 100 - level)
        found.append((kind, 100 - level - height, height))
        level += height
    return found


class NodeRow(NamedTuple):
    name: str
    cards: str
    cpu_milli: int
    memory_mib: int
    taints: str
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class DrawnNode:
    html: SafeString
    cards: Fraction  # physical ones: a slice counts as the part of a board that it is
    used: Fraction
    parts: int  # slices and shares


def cells_of(cards: Iterable[tuple[str, float]], pods: Iterable[HeldCard]) -> dict[str, list[Slot]]:
    """A pod that does not name its cards takes the first empty ones, so these pods come last."""
    slots = {name: [Slot() for _place in range(round(count))] for name, count in cards}
    for pod in pods:
        _place_pod(slots.get(pod.card, []), pod)
    return slots


def _place_pod(slots: list[Slot], pod: HeldCard) -> None:
    named = [slots[place] for place in orjson.loads(pod.places) if 0 <= place < len(slots)]
    milli = pod.card_milli or WHOLE
    wanted = max(1, round(milli / WHOLE))
    cells = named or [slot for slot in slots if not slot.parts][:wanted]
    share = min(milli, WHOLE) if wanted == 1 else WHOLE
    service = pod.service_type if pod.service_type in ("inference", "training") else "foreign"
    name = f"{pod.namespace}/{pod.name}" if pod.own else _("a gang of another tenant")
    for cell in cells:
        cell.parts.append((service, share))
        cell.gangs.append(name)
        cell.gang_id = pod.gang_id or cell.gang_id
        cell.leaving = cell.leaving or pod.leaving


@by_language
def drawn(slug: str, row: NodeRow, pods: tuple[HeldCard, ...], card: str) -> DrawnNode:
    """Kept: most nodes are as they were when the page was asked for last."""
    there = sorted(orjson.loads(row.cards).items())
    cells = cells_of(there, pods)
    used = {name: sum(min(cell.used, WHOLE) for cell in of_type) for name, of_type in cells.items()}
    context = {
        "slug": slug,
        "row": row,
        "cards": [(name, of_type, used[name]) for name, of_type in cells.items()],
        "free": free_milli(there, pods, card),
        "not_ready": says_not_ready(orjson.loads(row.taints)),
    }
    html = render_to_string("nodes/row.html", context)
    return DrawnNode(
        html,
        cards=sum((len(of_type) * share_of_board(name) for name, of_type in cells.items()), Fraction()),
        used=sum((used[name] * share_of_board(name) / WHOLE for name in cells), Fraction()),
        parts=sum(len(of_type) for name, of_type in cells.items() if is_part(name)),
    )


def _line(rows: Sequence[DrawnNode], *, alone: bool) -> str:
    return summed_up(rows) if alone else _("On this page: %(sums)s") % {"sums": summed_up(rows)}


def summed_up(rows: Sequence[DrawnNode]) -> str:
    line = ngettext("%(n)s node", "%(n)s nodes", len(rows)) % {"n": amounts.number(len(rows))}
    line = _("%(nodes)s with %(all)s physical cards, %(used)s of them in use.") % {
        "nodes": line,
        "all": amounts.number(round(sum(row.cards for row in rows))),
        "used": amounts.number(round(sum(row.used for row in rows))),
    }
    parts = sum(row.parts for row in rows)
    if parts:
        words = ngettext(
            "%(n)s slice or share is cut from them.", "%(n)s slices and shares are cut from them.", parts
        ) % {"n": amounts.number(parts)}
        line = f"{line} {words}"
    return line


def troubles(not_ready: int, closed: int) -> list[tuple[str, str]]:
    found = []
    if not_ready:
        words = ngettext("%(n)s node is not ready", "%(n)s nodes are not ready", not_ready)
        found.append((words % {"n": amounts.number(not_ready)}, "not_ready"))
    if closed:
        words = ngettext("%(n)s node is closed", "%(n)s nodes are closed", closed)
        found.append((words % {"n": amounts.number(closed)}, "closed"))
    return found


@page(section="nodes", topics="sessions nodes")
def nodes(this: Page) -> HttpResponse:
    cluster = this.cluster
    form = NodeFilter(this.request.GET, card_names(cluster))
    found = form.apply(visible_nodes(this.access).filter(cluster=cluster, gone_at__isnull=True))
    card, wanted = form.value("card"), form.value("order")
    csv = this.request.GET.get("format") == "csv"
    if wanted or csv:
        found = with_free_cards(found, cluster, card)
    order = _ORDERS[wanted]
    if csv:
        return csv_list(
            f"nodes-{cluster.slug}",
            {
                "node": lambda node: node.name,
                "cpu_milli": lambda node: node.cpu_milli,
                "memory_mib": lambda node: node.memory_mib,
                "cards": lambda node: plain_cards(node.cards),
                "unschedulable": lambda node: node.unschedulable,
                "free_cards": lambda node: f"{node.free / WHOLE:g}",
            },
            found.order_by(*order),
        )
    shown = with_troubles(found, cluster)
    values = shown.annotate(cards_json=Cast("cards", TextField()), taints_json=Cast("taints", TextField())).values_list(
        *("name", "cards_json", "cpu_milli", "memory_mib", "taints_json", "unschedulable", "id"),
        *("nodes_not_ready", "nodes_closed"),
        *(("free",) if wanted else ()),
        named=True,
    )
    part = paged(values, order, this.request.GET.get("cursor", ""), size=ROWS)
    pods: dict[str, list[HeldCard]] = defaultdict(list)
    for pod in pods_on_nodes(this.access, cluster, [node.name for node in part.rows]):
        pods[pod.node].append(pod)
    rows = [drawn(cluster.slug, NodeRow(*node[:6]), tuple(pods[node.name]), card) for node in part.rows]
    first = part.rows[0] if part.rows else None
    return this.render(
        "nodes/nodes.html",
        {
            "rows": rows,
            "page": part,
            "form": form,
            "line": _line(rows, alone=not (part.next or part.previous)) if rows else "",
            "troubles": troubles(first.nodes_not_ready, first.nodes_closed) if first else [],
        },
    )
