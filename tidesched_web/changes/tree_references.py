from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from django.utils.translation import gettext as _

from tidesched_web.changes.documents import REPLACE, RULES, Fault
from tidesched_web.changes.tree_document import PLATFORM, Document, key_of, kind_of, parts_of, pointer
from tidesched_web.common.hints import Hints, cut
from tidesched_web.common.sentences import listed
from tidesched_web.common.shown_names import hidden_in
from tidesched_web.engine.cards import near_card
from tidesched_web.quota import tide_document

MOST_PLANS: Final = 100
MOST_LAYERS_ON: Final = 300


def references(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    edits: Mapping[str, Any],
    card_names: Iterable[str],
    *,
    shown: Container[str] = (),
    hints: Hints | None = None,
    sees: Callable[[str], bool] = lambda _key: True,
) -> Iterator[Fault]:
    """``sees``: what the reader may see; no other is offered in place of a wrong name. O(documents + edits)."""
    cards = {*card_names, *(parts_of(key)[0] for key in after if kind_of(key) == "card-type")}
    deleted = {parts_of(key)[0] for key, patch in edits.items() if kind_of(key) == "card-type" and patch is None}
    cards -= {name for name in deleted if name not in shown}
    names = _Names(after, cards, hints or Hints(), sees)
    for key in sorted(edits):
        document = after.get(key)
        if document is None:
            continue
        yield from _unknown_cards(key, document, names)
        match kind_of(key):
            case "queue":
                if key not in before and "service_type" not in document:
                    yield from _perhaps_another(key, before, names)
                yield from _queue(key, document, names)
            case "project" | "business-line":
                yield from _owned(key, names)
            case "grant":
                yield from _grant(key, names)
            case "card-type":
                yield from _aliases(key, names)
            case "tide-plan":
                for fault in tide_document.unknown_names(document, names.queues, cards, names.hints):
                    yield Fault(key, fault.field, fault.code, fault.detail)
        if key in before:
            yield from _fixed(key, before[key], document, edits[key])
    yield from _too_many_plans(before, after, edits)
    yield from _too_many_layers(before, after, edits)
    gone = {key for key, patch in edits.items() if patch is None and key in before}
    if RULES in gone:
        yield Fault(RULES, "", "invalid", _("The rules of a cluster can be changed, not deleted."))
    gone = {key for key in gone if kind_of(key) != "card-type" or parts_of(key)[0] not in shown}
    if gone:
        yield from _still_named(gone, after)


class _Names:
    def __init__(
        self, documents: Mapping[str, Document], cards: set[str], hints: Hints, sees: Callable[[str], bool]
    ) -> None:
        self.documents, self.cards, self.hints, self.sees = documents, cards, hints, sees

    @cached_property
    def in_sight(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for key in self.documents:
            if self.sees(key):
                kind, _slash, name = key.partition("/")
                found[kind].append(name)
        return found

    @cached_property
    def queues(self) -> frozenset[str]:
        return frozenset(parts_of(key)[0] for key in self.documents if kind_of(key) == "queue")

    @cached_property
    def owners_of_aliases(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for key, document in self.documents.items():
            for alias in document.get("aliases", ()) if kind_of(key) == "card-type" else ():
                found[alias].append(parts_of(key)[0])
        return found

    def meant(self, name: str, known: Callable[[], list[str]]) -> str:
        return self._offered(self.hints.near(name, known))

    def meant_card(self, name: str) -> str:
        return self._offered(near_card(name, sorted(self.cards)) if self.hints.take() else None)

    @staticmethod
    def _offered(near: str | None) -> str:
        return " " + _("Did you mean %(near)s?") % {"near": near} if near else ""


def _perhaps_another(key: str, before: Mapping[str, Document], names: _Names) -> Iterator[Fault]:
    """A new queue without its service type is most often a misspelt one."""
    name = parts_of(key)[0]
    known = [other for other in names.in_sight["queue"] if key_of("queue", other) in before]
    near = names.hints.near(name, known)
    if near is not None:
        said = _(
            "There is no queue %(name)s; the nearest is %(near)s. To make a queue %(name)s, give its service_type too."
        )
        yield Fault(key, "", "unknown_reference", said % {"name": cut(name), "near": near})


def _queue(key: str, document: Document, names: _Names) -> Iterator[Fault]:
    """An inference queue has a project, a training queue a business line; a project may come with it."""
    tenant, project, line = (document.get(name) for name in ("tenant", "project", "business_line"))
    service_type = document.get("service_type")
    if service_type == "inference":
        if not tenant:
            yield Fault(key, "/tenant", "required", _("An inference queue belongs to a tenant."))
        if not project:
            yield Fault(key, "/project", "required", _("An inference queue belongs to a project."))
        if line:
            yield Fault(key, "/business_line", "invalid", _("A business line is for training queues."))
    elif service_type == "training" and not line:
        yield Fault(key, "/business_line", "required", _("A training queue belongs to a business line."))
    documents = names.documents
    if tenant and key_of("tenant", tenant) not in documents:
        yield _missing(key, "/tenant", "tenant", tenant, names)
        return
    if project and key_of("project", tenant, project) not in documents:
        yield _missing(key, "/project", "project", f"{tenant or PLATFORM}/{project}", names)
    if line and service_type == "training" and key_of("business-line", tenant, line) not in documents:
        yield _missing(key, "/business_line", "business-line", f"{tenant or PLATFORM}/{line}", names)


def _owned(key: str, names: _Names) -> Iterator[Fault]:
    tenant = parts_of(key)[0]
    platform = kind_of(key) == "business-line" and tenant == PLATFORM
    if not platform and key_of("tenant", tenant) not in names.documents:
        yield _missing(key, "", "tenant", tenant, names)


def _grant(key: str, names: _Names) -> Iterator[Fault]:
    queue = parts_of(key)[1]
    if key_of("queue", queue) not in names.documents:
        yield _missing(key, "", "queue", queue, names)


def _aliases(key: str, names: _Names) -> Iterator[Fault]:
    own = parts_of(key)[0]

    def taken(name: str) -> str | None:
        others = [owner for owner in names.owners_of_aliases.get(name, ()) if owner != own]
        return others[-1] if others else None

    if (card := taken(own)) is not None:
        said = _("%(name)s is another name of %(card)s.") % {"name": own, "card": card}
        yield Fault(key, "", "name_taken", said, sibling=key_of("card-type", card))
    for alias in names.documents[key].get("aliases", []):
        owner = alias if alias in names.cards else taken(alias)
        if owner is not None:
            said = (
                _("%(name)s is the name of a card type already.")
                if alias in names.cards
                else _("%(name)s is another name of %(card)s.")
            )
            yield Fault(key, "/aliases", "name_taken", said % {"name": alias, "card": owner})


def _missing(key: str, field: str, kind: str, name: str, names: _Names) -> Fault:
    """What is offered instead belongs to the same tenant: the others' would be refused in its place."""
    owner, slash, _rest = name.partition("/")

    def known() -> list[str]:
        return [other for other in names.in_sight[kind] if other.startswith(f"{owner}/") or not slash]

    said = _("There is no %(kind)s %(name)s.") % {"kind": kind.replace("-", " "), "name": cut(name)}
    return Fault(key, field, "unknown_reference", said + names.meant(name, known))


def _card_maps(document: Document) -> Iterator[tuple[str, Mapping[str, int]]]:
    if "card_quota" in document:
        yield "/card_quota", document["card_quota"]
    for service_type, limits in document.get("quota", {}).items():
        yield pointer("quota", service_type, "card_quota"), limits.get("card_quota", {})


def _unknown_cards(key: str, document: Document, names: _Names) -> Iterator[Fault]:
    for field, counts in _card_maps(document):
        for name in counts:
            if name not in names.cards:
                text = _("Card type %(name)s is known to no node of this cluster, and is not declared ahead.")
                said = text % {"name": cut(name)}
                said += names.meant_card(name)
                yield Fault(key, field + pointer(cut(name)), "unknown_card", said)


def _too_many_plans(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[Fault]:
    """The sums are looked at in every hour that the plans of a cluster make in a year."""
    new = sorted(key for key in edits if kind_of(key) == "tide-plan" and key in after and key not in before)
    count = sum(kind_of(key) == "tide-plan" for key in after) if new else 0
    if count > MOST_PLANS:
        said = _("A cluster may have at most %(most)d tide plans; with this change it would have %(count)d.")
        yield Fault(new[0], "", "invalid", said % {"most": MOST_PLANS, "count": count}, limit=MOST_PLANS)


def _too_many_layers(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[Fault]:
    """The same of the layers that are switched on: all of them together make these hours."""
    more = [key for key in sorted(edits) if _layers_on(after.get(key)) > _layers_on(before.get(key))]
    count = sum(map(_layers_on, after.values())) if more else 0
    if count > MOST_LAYERS_ON:
        said = _(
            "The plans of a cluster that are switched on may have at most %(most)d layers together; with this change "
            "they would have %(count)d."
        )
        said %= {"most": MOST_LAYERS_ON, "count": count}
        yield Fault(more[0], "/layers", "invalid", said, limit=MOST_LAYERS_ON)


def _layers_on(document: Document | None) -> int:
    return len(document["layers"]) if document and document.get("enabled") and "layers" in document else 0


def _fixed(key: str, before: Document, document: Document, patch: Any) -> Iterator[Fault]:
    kind = kind_of(key)
    if kind == "queue" and document.get("service_type") != before["service_type"]:
        said = _("The service type of a queue stays: its gangs were admitted under it. Make another queue.")
        yield Fault(key, "/service_type", "immutable", said)
    if kind == "priority-class" and document.get("value") != before["value"] and not patch.get(REPLACE):
        said = _("Kubernetes cannot edit the value of a live class. Replacing it is an act of its own: say replace.")
        yield Fault(key, "/value", "replace_needed", said)


def _still_named(gone: set[str], after: Mapping[str, Document]) -> Iterator[Fault]:
    """What is deleted although a document that stays names it; one fault for each, with the first names."""
    namers: dict[str, list[str]] = defaultdict(list)
    lost_cards = {parts_of(key)[0]: key for key in gone if kind_of(key) == "card-type"}
    for key, document in after.items():
        for other in _named_by(key, document):
            if other in gone:
                namers[other].append(key)
        if lost_cards:
            named = {name for _field, counts in _card_maps(document) for name in counts}
            if kind_of(key) == "card-type":
                named.add(document.get("parent", ""))
            for name in named & lost_cards.keys():
                namers[lost_cards[name]].append(key)
    for key, found in sorted(namers.items()):
        # Not every reader of the plan sees what names it: a tide plan names queues of all tenants.
        shown = tuple(found[:3])
        names = listed(shown) + (" …" if len(found) > len(shown) else "")
        yield Fault(
            key,
            "",
            "in_use",
            _("%(count)d objects depend on it.") % {"count": len(found)},
            in_use=len(found),
            sibling=found[0],
            remedy=_("They are: %(names)s.") % {"names": names},
            remedy_names=shown,
        )


def _named_by(key: str, document: Document) -> Iterator[str]:
    kind = kind_of(key)
    if kind == "queue":
        tenant = document.get("tenant")
        if tenant:
            yield key_of("tenant", tenant)
        if "project" in document:
            yield key_of("project", tenant, document["project"])
        if "business_line" in document:
            yield key_of("business-line", tenant, document["business_line"])
    elif kind in ("project", "business-line"):
        yield key_of("tenant", parts_of(key)[0])
    elif kind == "grant":
        yield key_of("queue", parts_of(key)[1])
    elif kind == "tide-plan":
        yield from sorted({key_of("queue", queue) for layer in document["layers"] for queue in layer["quota"]})


def drained(edits: Mapping[str, Any], live_gangs: Mapping[str, int]) -> Iterator[Fault]:
    """A queue closes, drains, then goes: none is deleted while it has gangs."""
    for key, patch in sorted(edits.items()):
        count = live_gangs.get(parts_of(key)[0], 0) if patch is None and kind_of(key) == "queue" else 0
        if count:
            said = _("It still has %(count)d gangs. Close it and delete it when they have ended.")
            yield Fault(key, "", "not_drained", said % {"count": count}, in_use=count)


def misleading_names(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[Fault]:
    for key in sorted(edits):
        if key in after and kind_of(key) in ("tenant", "project", "business-line"):
            name = after[key].get("name", "")
            if name != before.get(key, {}).get("name") and (problem := hidden_in(name)):
                yield Fault(key, "/name", "misleading_name", problem)
