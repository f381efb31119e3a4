"""What the script of the quota editor says, in the reader's language. `%s` and `{name}` are filled in there."""

from __future__ import annotations

from django.utils.translation import gettext as _


def words() -> dict[str, str]:
    """Every text of `static/js/quota-editor.js` by its name."""
    return {
        "corner": _("Tenant › project › queue"),
        "used": _("{n} used"),
        "given": _("{n} given"),
        "given_of": _("{given} of {limit}"),
        "no_limit": _("no limit"),
        "now": _("now {now}"),
        "in_use": _("in use {n}"),
        "below_use": _("{n} are in use: nobody is evicted by that, but nothing new starts until they fall below it."),
        "not_number": _("“{text}” is no number."),
        "whole": _("Cards are whole: 0, 1, 2, …"),
        "range": _("At least {least}, at most {most}."),
        "readonly": _("This cell cannot be edited."),
        "not_yours": _("Set by platform admins."),
        "not_here": _("Only queues have this."),
        "over_hardware": _(
            "{service} {column}: {requested} are handed on, but the hardware allows {limit}: {excess} too many."
        ),
        "over_holder": _("{holder} hands on {requested} {column}, but has {limit}: {excess} too many."),
        "give_way": _("{sibling} could give way: it has {claim}, of which {used} are in use."),
        "first_limit": _("{holder} had no limit: from now on every card type that is left empty counts as 0 here."),
        "changes": _("{n} changed"),
        "no_changes": _("nothing changed yet"),
        "error": _("1 error"),
        "errors": _("{n} errors"),
        "no_errors": _("no errors"),
        "checking": _("checking"),
        "checked": _("checked with the server"),
        "unchecked": _("the server could not be asked; it checks again at the review"),
        "skipped": _("{n} cells were left out: {why}"),
        "fixed": _("they cannot be edited"),
        "copied": _("{n} cells copied"),
        "sum": _("{n} cells, sum {sum}"),
        "restored": _("Your draft of {when} is back: {n} cells."),
        "restored_moved": _("Your draft of {when} is back: {n} cells. The tree has changed since; look at them again."),
        "rows": _("{n} of {all} rows"),
        "failed": _("The quotas could not be loaded. Try again in a moment."),
        "leave": _("Escape once more leaves the grid."),
        "go": _("Go to the cell"),
        "inference": _("Inference"),
        "training": _("Training"),
        "tenant": _("tenant"),
        "project": _("project"),
        "cores": _("{n} cores"),
        "gib": _("{n} GiB"),
    }
