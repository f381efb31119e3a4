"""Search by name over what the reader sees; one hit is opened at once."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect

from tidesched_web.clusters.selectors import visible_nodes
from tidesched_web.console.page import Page, page
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.workloads.selectors import visible_gangs

HITS = 20


@page(section="search")
def search(this: Page) -> HttpResponse:
    """Queues, gangs and nodes whose name holds the text."""
    text = this.request.GET.get("q", "").replace("\0", "").strip()[:120]
    context: dict[str, object] = {"search_text": text, "queues": [], "gangs": [], "nodes": []}
    if text:
        cluster = this.cluster
        namespace, slash, name = text.partition("/")
        gangs = visible_gangs(this.access).filter(cluster=cluster).defer("manifest")
        gangs = (
            gangs.filter(namespace__iexact=namespace, name__icontains=name)
            if slash
            else gangs.filter(name__icontains=text)
        )
        queues = list(visible_queues(this.access).filter(cluster=cluster, name__icontains=text)[:HITS])
        found = list(gangs.order_by("-submitted_at", "-id")[:HITS])
        nodes = list(
            visible_nodes(this.access).filter(cluster=cluster, name__icontains=text, gone_at__isnull=True)[:HITS]
        )
        if len(queues) + len(found) + len(nodes) == 1:
            if queues:
                return redirect("console:queue", cluster.slug, queues[0].name)
            if found:
                return redirect("console:gang", cluster.slug, found[0].pk)
        context |= {"queues": queues, "gangs": found, "nodes": nodes}
    return this.render("help/search.html", context)
