"""The page that explains the words."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static

from tidesched_web.console import reason_words
from tidesched_web.console.navigation import GROUPS
from tidesched_web.console.page import Page, page
from tidesched_web.console.page_help import ABOUT
from tidesched_web.console.reason_help import EXPLAINED
from tidesched_web.console.states import LOOKS


def favicon(_request: HttpRequest) -> HttpResponse:
    return redirect(static("img/mark.svg"))


@page(section="help")
def help_page(this: Page) -> HttpResponse:
    everything = this.access.everything
    return this.render(
        "help/help.html",
        {
            "reasons": [(code, title, EXPLAINED[code]) for code, title in reason_words.TITLES.items()],
            "gang_states": list(LOOKS["gang"]),
            "pages": [
                (entry.section, entry.word, ABOUT[entry.section])
                for group in GROUPS
                for entry in group.entries
                if entry.section != "help" and not (entry.of_tenants if everything else entry.whole_sight)
            ],
        },
    )
