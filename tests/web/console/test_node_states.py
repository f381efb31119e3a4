"""The nodes page counts physical cards as every other page does, and says which nodes take no gangs."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from tests.web.console.test_pages import client_of
from tests.web.console.test_tide_figures import PARTS
from tidesched_web.clusters.models import Node
from tidesched_web.console import nodes

pytestmark = pytest.mark.django_db
NODES = "/clusters/demo/nodes/"


def text_of(client, query: str = "") -> str:
    page = client.get(NODES + query).content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<h1") :]).split())


def test_it_counts_physical_cards_and_apart_from_them_what_is_cut_from_them(world, monkeypatch) -> None:
    kept = Node.objects.filter(gone_at__isnull=True).values_list("cards", flat=True)
    counts = [(card, count) for cards in kept for card, count in cards.items()]
    total = sum(Fraction(count, PARTS.get(card, 1)) for card, count in counts)
    parts = sum(count for card, count in counts if card in PARTS)
    assert parts > 0
    said = text_of(client_of(world.admin))
    found = re.search(r"(\d+) nodes with (\d+) physical cards, (\d+) of them in use\. (\d+) slices and shares", said)
    assert found, said[:400]
    assert (int(found[1]), int(found[2]), int(found[4])) == (len(kept), round(total), parts)
    assert 0 < int(found[3]) < total
    assert "On this page" not in said
    monkeypatch.setattr(nodes, "ROWS", 3)
    assert "On this page: 3 nodes with " in text_of(client_of(world.admin))


def test_nodes_that_take_no_gangs_are_counted_and_found(world) -> None:
    Node.objects.update(unschedulable=False, taints=[])
    client = client_of(world.admin)
    assert "All nodes are ready." in text_of(client)
    here = Node.objects.filter(gone_at__isnull=True)
    names = list(here.order_by("name").values_list("name", flat=True))
    Node.objects.filter(name=names[0]).update(taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
    # One that is both is not ready, as its row says.
    Node.objects.filter(name=names[1]).update(
        taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], unschedulable=True
    )
    Node.objects.filter(name=names[2]).update(unschedulable=True)
    said = text_of(client)
    assert "2 nodes are not ready , 1 node is closed" in said
    page = client.get(NODES).content.decode()
    assert f'href="{NODES}?state=not_ready"' in page

    def found(state: str) -> list[str]:
        return re.findall(
            r'<span class="key">([^<]+)</span></th>', client.get(f"{NODES}?state={state}").content.decode()
        )

    assert found("not_ready") == names[:2]
    assert found("closed") == [names[2]]
    assert set(found("ready")) == set(names[3:])
