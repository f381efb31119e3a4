"""Which card types the cluster has, and what a pod's request means in them."""

from collections.abc import Iterable, Mapping

from scheduler_core.model.cards import CardRequest, CardType
from scheduler_core.model.resources import MAX_CARDS, MILLI
from scheduler_core.serde.kubernetes import annotations as keys

WHOLE_CARD = "nvidia.com/gpu"


class Catalogue:
    """The card types of all nodes; the first definition of a name counts. ``types``: by name. ``resources``: the
    extended resources that count cards. ``conflicts``: names with two resources."""

    def __init__(self, types: Iterable[CardType]) -> None:
        self.types: dict[str, CardType] = {}
        self.conflicts: list[str] = []
        for card_type in types:
            known = self.types.setdefault(card_type.name, card_type)
            if known.resource != card_type.resource and card_type.name not in self.conflicts:
                self.conflicts.append(card_type.name)
        self.resources = frozenset(t.resource for t in self.types.values())

    def request(
        self, names: tuple[str, ...], devices: Mapping[str, int], share: int, products: tuple[str, ...] = ()
    ) -> tuple[CardRequest | None, dict[str, int], str]:
        """What a pod asks of cards, the scalars that are no cards, and what is wrong with the request.

        Args:
            names: card types of its annotation. devices: extended resources in whole units.
            share: milli-cards of one card, or 0. products: card types that the nodes have to have, see
                :func:`scheduler_core.serde.kubernetes.products.named_products`."""
        asked = sorted(name for name in devices if name in self.resources and devices[name])
        if share:
            if not names:
                return None, dict(devices), f"{keys.CARD_MILLI} needs {keys.CARD_NAME}: of which card is the share?"
            if asked:
                return None, dict(devices), f"asks for a share of a card and for {asked[0]}; one of them has to go"
            return CardRequest(names, "", share), dict(devices), ""
        if names:
            return self._named(names, devices)
        if not asked:
            return None, dict(devices), ""
        rest = {name: count for name, count in devices.items() if name not in asked}
        problem = f"asks for {asked[0]} and {asked[1]}; a pod takes cards of one kind" if len(asked) > 1 else ""
        implied = self._implied(asked[0], products)
        return CardRequest(implied, asked[0], _milli(devices[asked[0]]), written=not implied), rest, problem

    def _implied(self, resource: str, products: tuple[str, ...]) -> tuple[str, ...]:
        """The card types that a request means without naming them: of the products, or the only one that there is."""
        types = sorted(name for name, card in self.types.items() if card.resource == resource)
        if products:
            found = tuple(n for product in products for n in types if product in (n, self.types[n].parent))
            # A product that no node has is a card that no node has.
            return found or (products if resource.rpartition("/")[2] == "gpu" else ())
        return tuple(types) if len(types) == 1 else ()

    def _named(
        self, names: tuple[str, ...], devices: Mapping[str, int]
    ) -> tuple[CardRequest | None, dict[str, int], str]:
        choice = "|".join(names)
        resources = list(dict.fromkeys(self.types[name].resource for name in names if name in self.types))
        if len(resources) > 1:
            text = (
                f"{choice} is counted by {resources[0]} and by {resources[1]}; the cards of a choice share one resource"
            )
            return None, dict(devices), text
        resource = resources[0] if resources else _resource_of(names[0], devices)
        count = devices.get(resource, 0)
        if not count:
            return None, dict(devices), f"names card {choice} but asks for no {resource} in its limits"
        rest = {name: n for name, n in devices.items() if name != resource}
        other = sorted(name for name in rest if name in self.resources)
        problem = f"asks for {resource} and {other[0]}; a pod takes cards of one kind" if other else ""
        return CardRequest(names, resource, _milli(count)), rest, problem


def _milli(count: int) -> int:
    """Milli-cards, no more than any node has."""
    return min(count, MAX_CARDS) * MILLI


def _resource_of(name: str, devices: Mapping[str, int]) -> str:
    """The resource that counts a card which no node has, by its name."""
    if "/mig-" in name:
        return f"nvidia.com/mig-{name.split('/mig-', 1)[1].removesuffix('-mixed')}"
    if "/mps-" in name:
        return f"{WHOLE_CARD}.shared"
    return next(iter(devices)) if len(devices) == 1 else WHOLE_CARD
