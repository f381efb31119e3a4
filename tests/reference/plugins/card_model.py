"""card-model: rare cards and wishes."""

from __future__ import annotations

MODEL, MODE = "tidesched.io/card-model", "tidesched.io/card-model-mode"


class CardModel:
    """Required models, preferred models, and cards that nobody gets without naming them."""

    def __init__(self, arguments):
        self.rare = arguments.get("rareCards", [])
        self.weight = arguments.get("weight", 1)

    def well_written(self, world, gang):
        waiting = [t for t in world["tasks"].values() if t["gang"] == gang and t["status"] == "pending"]
        return all(_mark(task, MODE, "required") in ("required", "preferred") for task in waiting)

    def filter(self, world, task, name):
        has = _has(world, name)
        wish = _wish(task)
        if wish and _mark(task, MODE, "required") == "required" and not has & set(wish):
            return False
        # A card that the pod's nodes imply is not one that the pod names.
        names = task["pod"].card.names if task["named"] else ()
        named = {*wish, *_asked_by_label(task["pod"]), *names, *(n.split("/")[0] for n in names)}
        rare = has & set(self.rare)
        return not rare or bool(rare & named)

    def score(self, world, task, name):
        if _mark(task, MODE, "required") != "preferred":
            return 0
        for place, model in enumerate(_wish(task)):
            if model in _has(world, name):
                return 100.0 * 0.5**place * self.weight
        return 0


def _mark(task, key, default):
    pod = task["pod"]
    return pod.annotations.get(key, pod.labels.get(key, default))


def _wish(task):
    return [part.strip() for part in _mark(task, MODEL, "").split("|") if part.strip()]


def _asked_by_label(pod):
    """Values of labels that say what cards a node has, as the pod's selector and affinity ask for them."""
    terms = [*(pod.required_nodes or ()), *(wish.term for wish in pod.preferred_nodes)]
    asked = [(key, (value,)) for key, value in pod.node_selector.items()]
    asked += [(one.key, one.values) for term in terms for one in term if one.operator == "In"]
    return {
        value for key, values in asked if key == MODEL or ("/" in key and key.endswith(".product")) for value in values
    }


def _has(world, name):
    cards = [group.card for group in world["nodes"][name].cards if group.count]
    return {*cards, *(card.split("/")[0] for card in cards)}
