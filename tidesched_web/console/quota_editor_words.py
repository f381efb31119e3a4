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
        "below_use": _("{n} are in use: no gang is evicted by that, but nothing new starts until the use is below it."),
        "not_number": _("“{text}” is no number."),
        "whole": _("Cards are whole: 0, 1, 2, …"),
        "whole_number": _("A whole number is needed."),
        "comma": _(
            "“{text}” can be read in two ways: write 1,500 or 1500 for a thousand and a half, 1.5 for a fraction."
        ),
        "dot": _("“{text}” can be read in two ways: write {digits} for thousands."),
        "range": _("At least {least}, at most {most}."),
        "readonly": _("This cell cannot be edited."),
        "not_yours": _("Set by platform admins."),
        "not_here": _("Only queues have this."),
        "rule": _("hardware {hardware} × ratio {ratio} = {limit}"),
        "over_hardware": _(
            "{service} {column}: {requested} are given out, but at most {limit} may be ({rule}): {excess} too many."
        ),
        "over_holder": _("{holder} gives out {requested} {column}, but has {limit}: {excess} too many."),
        "tide": _("{now} now by a tide plan; {base} is the base, which is edited here."),
        "tide_now": _("{n} now by a tide plan"),
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
        "skipped": _("{n} inputs were not taken over: see the list above."),
        "copied": _("{n} cells copied"),
        "copied_one": _("1 cell copied"),
        "intake_paste": _("Pasted:"),
        "intake_file": _("CSV loaded:"),
        "intake_edit": _("Edited:"),
        "intake_counts": _("{taken} taken over, {left} not, {same} as before"),
        "intake_taken": _("What was taken over ({n})"),
        "cells_of": _("{why} Figures left out: {n}."),
        "no_column": _("There is no column of this name."),
        "no_row": _("There is no row of this name here."),
        "several_rows": _(
            "{n} rows have this name: add the columns service_type and key, as in the file of this page."
        ),
        "too_wide": _("The line has more cells than the first line has names."),
        "twice": _("Line {line} says this cell again, with another figure; the first one is taken."),
        "below_grid": _("This is below the last row that is shown."),
        "right_of_grid": _("This is to the right of the last column."),
        "line": _("Line {line}"),
        "line_column": _("Line {line}, column {column}"),
        "and_more": _("and {n} more"),
        "gone": _("This cell is not here any more."),
        "moved": _("Figures that were changed by others while you edit: {n}. They are in the grid now."),
        "moved_both": _(
            "Figures that were changed by others while you edit: {n}; {both} of them you edited too. Yours stay."
        ),
        "moved_rows": _("Others added or removed rows or columns of this grid."),
        "yours_stays": _("Yours is {n}, and stays."),
        "sum": _("{n} cells, sum {sum}"),
        "restored": _("Your draft of {when} is back: {n} cells."),
        "restored_one": _("Your draft of {when} is back: 1 cell."),
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
