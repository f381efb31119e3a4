from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.console import reason_words
from tidesched_web.console.navigation import GROUPS
from tidesched_web.console.page import Page, page
from tidesched_web.console.page_help import ABOUT
from tidesched_web.console.states import LOOKS

EXPLAINED: dict[str, Promise] = {
    "Suspended": _("A person has suspended the gang. It goes on when that is taken back."),
    "Misconfigured": _(
        "Its object is wrong: an unknown queue, card or priority class, or a field that cannot be read."
    ),
    "NotSupported": _("It asks for something that the scheduler does not act on; the reason names the field."),
    "TimedOut": _("Its pods did not become ready together in the time that the policy gives them."),
    "NoMatchingCard": _("No node has the card type or slice that it asks for."),
    "QueueClosed": _("Its queue is closed or closing: nothing new starts in it."),
    "ExceedsMaxQuota": _("It asks for more than its queue may ever use. It cannot start as it is."),
    "GangIncomplete": _("Not all pods that have to start together exist yet."),
    "WaitingForReclaim": _("Cards are being taken back for it; it starts when the pods on them have ended."),
    "NotAllowedInQueue": _("Its namespace has no grant for the queue that it names."),
    "WaitingForQuota": _("Other gangs use or were promised the quota of its queue."),
    "OverCommitted": _("The cluster has promised as much as the policy allows; the gang is not admitted yet."),
    "WaitingForCards": _("Its quota would do, but fewer cards of the type are free than it needs."),
    "NoNodeMatches": _("Node selectors, taints, affinity, ports or volumes leave no node for its pods."),
    "WaitingForResources": _("Processor, memory, storage or the number of pods is short on the nodes with its cards."),
    "Fragmented": _("Enough cards are free in all, but no set of nodes holds the whole gang."),
    "BehindHigherPriority": _("Gangs before it in the order take what is free."),
    "ReclaimForbidden": _("Cards could be taken back, but a rule forbids it for this gang or these victims."),
    "BackingOff": _("It was tried and refused; it is tried again after a pause."),
    "PendingEvaluation": _("No session has looked at it yet; the next one will."),
}


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
