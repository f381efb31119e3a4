from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.changes.search_selectors import HITS, Hit, found
from tidesched_web.console.navigation import groups
from tidesched_web.console.page import Page, page

# Kind → its heading and the set of states that its note is of ("" where the note is plain text).
_KINDS: dict[str, tuple[Any, str]] = {
    "queue": (gettext_lazy("Queues"), "service"),
    "gang": (gettext_lazy("Gangs"), "gang"),
    "node": (gettext_lazy("Nodes"), ""),
    "tenant": (gettext_lazy("Tenants"), ""),
    "project": (gettext_lazy("Projects"), ""),
    "change": (gettext_lazy("Changes"), "change"),
    "reclaim": (gettext_lazy("Reclaims"), "reclaim"),
    "user": (gettext_lazy("Users"), ""),
}


@dataclass(frozen=True, slots=True)
class Found:
    address: str
    text: str
    own: str
    note: str


@page(section="search")
def search(this: Page) -> HttpResponse:
    text = this.request.GET.get("q", "").replace("\0", "").strip()[:120]
    parts: list[dict[str, Any]] = []
    if text:
        hits = found(this.access, this.cluster, text)
        pages = _pages(this, text)
        if len(hits) == 1 and not pages:
            return redirect(_address(this, hits[0]))
        # The whole name of one gang opens it, whatever else names it: namespace/name is nothing else's.
        named = [hit for hit in hits if hit.kind == "gang" and hit.text == text]
        if len(named) == 1:
            return redirect(_address(this, named[0]))
        for kind, (word, states) in _KINDS.items():
            lines = [_line(this, hit) for hit in hits if hit.kind == kind]
            parts.append({"kind": kind, "word": word, "states": states, "lines": lines, "full": len(lines) == HITS})
        parts.append({"kind": "page", "word": _("Pages"), "states": "", "lines": pages})
    shown = [part for part in parts if part["lines"]]
    return this.render("help/search.html", {"search_text": text, "parts": shown})


def _pages(this: Page, text: str) -> list[Found]:
    access = this.access
    menu = groups(
        section="",
        cluster=this.cluster.slug,
        everything=access.everything,
        writes=access.administers or bool(access.admin_of),
        closed="",
        unlisted=True,
    )
    wanted = text.casefold()
    return [
        Found(entry["address"], str(entry["word"]), "", str(group["word"]))
        for group in menu
        for entry in group["entries"]
        if wanted in f"{entry['word']}\n{entry['words']}".casefold()
    ]


def _line(this: Page, hit: Hit) -> Found:
    text, own = hit.text, ""
    if hit.kind == "change":
        text, own = _("Change %(number)d") % {"number": hit.pk}, hit.text
    elif hit.kind == "reclaim":
        text, own = _("Reclaim %(number)d") % {"number": hit.pk}, hit.text
    elif hit.name != hit.text and hit.kind in ("tenant", "project"):
        own = hit.name
    return Found(_address(this, hit), text, own, hit.note)


def _address(this: Page, hit: Hit) -> str:
    slug = this.cluster.slug
    addresses: dict[str, Callable[[], str]] = {
        "queue": lambda: reverse("console:queue", args=[slug, hit.name]),
        "gang": lambda: reverse("console:gang", args=[slug, hit.pk]),
        "node": lambda: f"{reverse('console:nodes', args=[slug])}?q={hit.name}",
        "tenant": lambda: reverse("console:tenant", args=[hit.name]),
        "project": lambda: reverse("console:project", args=[hit.note, hit.name]),
        "change": lambda: reverse("console:change", args=[slug, hit.pk]),
        "reclaim": lambda: reverse("console:reclaim", args=[slug, hit.pk]),
        "user": lambda: reverse("console:user", args=[hit.pk]),
    }
    return addresses[hit.kind]()
