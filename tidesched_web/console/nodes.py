"""Nodes: each card of each node as a cell, and who holds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.clusters.models import Node
from tidesched_web.clusters.selectors import card_names, visible_nodes
from tidesched_web.console import amounts
from tidesched_web.console.export import csv_list, plain_cards
from tidesched_web.console.forms.filters import CardFilterForm
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.workloads.selectors import pods_on_nodes

WHOLE = 1000
ROWS = 100


class NodeFilter(CardFilterForm):
    """Filters of the node list."""

    q = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    card = forms.ChoiceField(label=gettext_lazy("Card type"))

    def apply(self, nodes: Any) -> Any:
        """Narrow the list."""
        if text := self.value("q"):
            nodes = nodes.filter(name__icontains=text)
        if card := self.value("card"):
            nodes = nodes.filter(cards__has_key=card)
        return nodes


@dataclass(slots=True)
class Slot:
    """One card of a node: its parts in milli-cards by what they are used for, and who holds it."""

    parts: list[tuple[str, int]] = field(default_factory=list)
    gangs: list[str] = field(default_factory=list)
    gang_id: int | None = None
    leaving: bool = False

    @property
    def used(self) -> int:
        """Milli-cards in use."""
        return sum(size for _kind, size in self.parts)

    def title(self) -> str:
        """What the cell says on hover and to a screen reader."""
        if not self.parts:
            return _("idle")
        text = _(", ").join(self.gangs)
        if self.used < WHOLE:
            text += f" ({amounts.number(self.used / WHOLE)})"
        return f"{text}{_(', ')}{_('leaving')}" if self.leaving else text


def pieces(parts: Iterable[tuple[str, int]]) -> list[tuple[str, float, float]]:
    """(kind, top, height) in percent of the parts of a card, filled from below."""
    found: list[tuple[str, float, float]] = []
    level = 0.0
    for kind, size in parts:
        height = min(100 * size / WHOLE, 100 - level)
        found.append((kind, 100 - level - height, height))
        level += height
    return found


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with its cells by card type."""

    node: Node
    cards: list[tuple[str, list[Slot], int]]  # (card type, cells, milli-cards in use)


def node_rows(nodes: Iterable[Node], pods: Iterable[dict[str, Any]]) -> list[NodeRow]:
    """Put the pods into the cells that they hold; a pod that does not say which takes the first empty ones."""
    by_node: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for pod in pods:
        by_node[pod["node"]].append(pod)
    rows = []
    for node in nodes:
        slots = {card: [Slot() for _place in range(round(count))] for card, count in sorted(node.cards.items())}
        for pod in sorted(by_node[node.name], key=lambda entry: not entry["card_indices"]):
            _place_pod(slots.get(pod["card"], []), pod)
        rows.append(
            NodeRow(
                node, [(card, cells, sum(min(cell.used, WHOLE) for cell in cells)) for card, cells in slots.items()]
            )
        )
    return rows


def _place_pod(slots: list[Slot], pod: dict[str, Any]) -> None:
    named = [slots[place] for place in pod["card_indices"] if 0 <= place < len(slots)]
    milli = pod["card_milli"] or WHOLE
    wanted = max(1, round(milli / WHOLE))
    cells = named or [slot for slot in slots if not slot.parts][:wanted]
    share = min(milli, WHOLE) if wanted == 1 else WHOLE
    service = pod["gang__service_type"] if pod["gang__service_type"] in ("inference", "training") else "foreign"
    name = f"{pod['gang__namespace']}/{pod['gang__name']}" if pod["own"] else _("a gang of another tenant")
    for cell in cells:
        cell.parts.append((service, share))
        cell.gangs.append(name)
        cell.gang_id = pod["gang_id"] if pod["own"] else cell.gang_id
        cell.leaving = cell.leaving or pod["leaving"]


@page(section="nodes", topics="sessions nodes")
def nodes(this: Page) -> HttpResponse:
    """The grid of nodes and cards."""
    cluster = this.cluster
    form = NodeFilter(this.request.GET, card_names(cluster))
    found = form.apply(visible_nodes(this.access).filter(cluster=cluster, gone_at__isnull=True))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"nodes-{cluster.slug}",
            {
                "node": lambda node: node.name,
                "cpu_milli": lambda node: node.cpu_milli,
                "memory_mib": lambda node: node.memory_mib,
                "cards": lambda node: plain_cards(node.cards),
                "unschedulable": lambda node: node.unschedulable,
            },
            found.order_by("name"),
        )
    part = paged(found, ("name", "id"), this.request.GET.get("cursor", ""), size=ROWS)
    rows = node_rows(part.rows, pods_on_nodes(this.access, cluster, [node.name for node in part.rows]))
    used = sum(used for row in rows for _card, _cells, used in row.cards)
    all_cards = sum(len(cells) for row in rows for _card, cells, _used in row.cards)
    line = ngettext("%(n)s node", "%(n)s nodes", len(rows)) % {"n": amounts.number(len(rows))}
    line = _("%(nodes)s with %(all)s cards, %(used)s of them in use.") % {
        "nodes": line,
        "all": amounts.number(all_cards),
        "used": amounts.cards(used),
    }
    return this.render("nodes/nodes.html", {"rows": rows, "page": part, "form": form, "line": line if rows else ""})
