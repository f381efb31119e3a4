"""The page that explains the words."""

from __future__ import annotations

from django.http import HttpResponse

from tidesched_web.console import wording
from tidesched_web.console.page import Page, page
from tidesched_web.console.states import LOOKS


@page(section="help")
def help_page(this: Page) -> HttpResponse:
    """Words, states, reasons and keys."""
    return this.render(
        "help/help.html",
        {"reasons": [(code, title) for code, title in wording.TITLES.items()], "gang_states": list(LOOKS["gang"])},
    )
