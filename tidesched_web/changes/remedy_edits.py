import copy
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from tidesched_web.changes.tree_document import Document, Edits, key_of, kind_of, parts_of
from tidesched_web.common.card_names import card_label
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.quota import tide


@dataclass(frozen=True, slots=True)
class MoreCards:
    edits: Edits
    plan: str = ""


def more_cards(
    documents: Mapping[str, Document], queue: str, card: str, by: int, *, now: dt.datetime, access: Access
) -> MoreCards:
    """Where an open layer *sets* the figure the base counts for nothing: that layer is raised, if one may."""
    plans = tide.enabled_plans(
        {parts_of(key)[0]: document for key, document in documents.items() if kind_of(key) == "tide-plan"}
    )
    opened = tide.open_layers(plans, now)
    amounts = [
        (place, amount)
        for place in opened
        if (amount := plans[place[0]].layers[place[1]].quota.get(queue, {}).get(card)) is not None
    ]
    base = documents[key_of("queue", queue)].get("card_quota", {}).get(card, 0)
    sets = [number for number, (_place, amount) in enumerate(amounts) if amount.act == "set"]
    figure, after = (amounts[sets[-1]][1].cards, amounts[sets[-1] + 1 :]) if sets else (base, amounts)
    wanted = _under(figure, after) + by
    raised = figure + by
    # What layers take away may leave nothing: so much more is needed before any of it is seen.
    while (seen := _under(raised, after)) < wanted:
        raised += wanted - seen
    if not sets:
        return MoreCards({key_of("queue", queue): {"card_quota": {card: raised}}})
    (plan, layer), _amount = amounts[sets[-1]]
    name = plans[plan].name
    if not access.administers:
        text = _(
            "The tide plan %(plan)s sets the %(card)s quota of queue %(queue)s to %(figure)s now, so a higher base "
            "changes nothing at this hour. Ask a platform admin to change the plan."
        )
        facts = {"plan": name, "card": card_label(card), "queue": queue, "figure": figure}
        raise DomainError("permission_denied", text % facts)
    layers = copy.deepcopy(documents[key_of("tide-plan", name)]["layers"])
    layers[layer]["quota"][queue][card] = {"set": raised}
    return MoreCards({key_of("tide-plan", name): {"layers": layers}}, name)


def _under(figure: int, amounts: list[tuple[tuple[int, int], tide.Amount]]) -> int:
    for _place, amount in amounts:
        figure = amount.on(figure)
    return figure
