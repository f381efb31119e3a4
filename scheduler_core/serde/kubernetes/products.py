"""Card types that a pod names by where it may run: a node selector or a required affinity on a product label."""

from collections.abc import Mapping

from scheduler_core.model.pod import NodeSelectorTerm

_PRODUCT = ".product"


def named_products(selector: Mapping[str, str], required: tuple[NodeSelectorTerm, ...] | None) -> tuple[str, ...]:
    """Values of product labels of which one has to hold, in the order in which they are written; empty for none. A node
    selector holds beside an affinity, so it is the narrower of the two. An affinity names products only where each of
    its terms does."""
    chosen = tuple(value for key, value in selector.items() if _is_product(key))
    if chosen:
        return chosen[:1]
    found: dict[str, None] = {}
    for term in required or ():
        values = [value for line in term if line.operator == "In" and _is_product(line.key) for value in line.values]
        if not values:
            return ()
        found.update(dict.fromkeys(values))
    return tuple(found)


def _is_product(key: str) -> bool:
    return key.endswith(_PRODUCT) and "/" in key and "/mig-" not in key
