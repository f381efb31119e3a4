"""Cards are counts, cpu is in milli-cores, memory in MiB; ``path`` is a row's place in a merge patch."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from tidesched_web.changes.selectors import Surroundings, tenant_of
from tidesched_web.changes.tree_document import Documents, key_of, kind_of, parts_of
from tidesched_web.common.card_names import card_label
from tidesched_web.common.ceiling import ceiling
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.tree_rules import CPU, MEMORY

MIB = 2**20
# What of a row may be edited.
NOTHING, FIGURES, RANKING = 0, 1, 2
Row = dict[str, Any]
# Field of a document, its column, and what one unit of the column is.
_FIGURES = (
    ("cpu_milli", "cpu", 1),
    ("memory_bytes", "memory", MIB),
    ("weight", "weight", 1),
    ("priority", "priority", 1),
)


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    label: str
    title: str
    kind: str
    path: tuple[str, ...]


def columns(documents: Documents, card_names: Collection[str]) -> list[Column]:
    cards = set(card_names)
    for key, document in documents.items():
        for limits in _card_maps(key, document):
            cards.update(limits)
    ordered = sorted(cards, key=lambda name: (name.partition("/")[0], name))
    return [
        *(Column(f"card:{name}", card_label(name), name, "cards", ("card_quota", name)) for name in ordered),
        Column("cpu", _("CPU"), _("CPU cores"), "cpu", ("cpu_milli",)),
        Column("memory", _("Memory"), _("Memory in GiB"), "memory", ("memory_bytes",)),
        Column("weight", _("Weight"), _("Weight"), "weight", ("weight",)),
        Column("priority", _("Priority"), _("Priority"), "priority", ("priority",)),
    ]


def _card_maps(key: str, document: Mapping[str, Any]) -> list[Mapping[str, int]]:
    if kind_of(key) == "queue":
        return [document.get("card_quota", {})]
    return [limits.get("card_quota", {}) for limits in document.get("quota", {}).values()]


def rows(
    documents: Documents,
    around: Surroundings,
    found: list[Column],
    *,
    own: Collection[str] | None,
    whole: bool,
    effective: Mapping[str, Mapping[str, int]] | None = None,
) -> list[Row]:
    """A parent before its children; ``own``: the tenants that the reader administers (None = everything)."""
    place = {column.key: index for index, column in enumerate(found)}
    tree = _Tree(documents, around, place, own)
    tree.effective = effective or {}
    result: list[Row] = []
    for service in ServiceType:
        result += tree.service(service, len(result), whole=whole)
    _use_below(result)
    return result


class _Tree:
    def __init__(
        self, documents: Documents, around: Surroundings, place: Mapping[str, int], own: Collection[str] | None
    ) -> None:
        self.documents, self.around, self.place, self.own = documents, around, place, own
        self.effective: Mapping[str, Mapping[str, int]] = {}
        self.queues: dict[tuple[str, str | None, str | None], list[str]] = defaultdict(list)
        self.projects: dict[str, list[str]] = defaultdict(list)
        for key, document in documents.items():
            if kind_of(key) == "queue":
                self.queues[document["service_type"], document.get("tenant"), document.get("project")].append(key)
            elif kind_of(key) == "project":
                self.projects[parts_of(key)[0]].append(key)

    def service(self, service: ServiceType, start: int, *, whole: bool) -> list[Row]:
        result: list[Row] = []
        parent = -1
        if whole:
            ratio = self.around.ratios.get(service.value, 1.0)
            root = self._row("", "service", service.value, str(service.label), service, -1, 1, NOTHING)
            hardware = {
                str(self.place[key]): number
                for name, number in self.around.hardware.items()
                if (key := name if name in (CPU, MEMORY) else f"card:{name}") in self.place
            }
            limits = {column: ceiling(number, ratio) for column, number in hardware.items()}
            result.append(root | {"limits": limits, "hardware": hardware, "ratio": ratio})
            parent = start
        tenants = [parts_of(key)[0] for key in self.documents if kind_of(key) == "tenant"]
        for slug in sorted(tenants):
            result += self._tenant(service, slug, start + len(result), parent)
        for key in self.queues.get((service.value, None, None), ()):
            result.append(self._queue(key, service, parent, 2))
        return result

    def _tenant(self, service: ServiceType, slug: str, at: int, parent: int) -> list[Row]:
        key = key_of("tenant", slug)
        document = self.documents[key]
        may = FIGURES if self._administers(slug) else NOTHING
        row = self._row(key, "tenant", slug, document.get("name", slug), service, parent, 2, may)
        # Its own admin asks for more of it; a platform admin sets it.
        row["asks"] = self.own is not None and may == FIGURES
        result = [row]
        for project in self.projects.get(slug, ()):
            name = parts_of(project)[1]
            queues = self.queues.get((service.value, slug, name), [])
            limited = service.value in self.documents[project].get("quota", {})
            if not queues and not limited and service == ServiceType.TRAINING:
                continue
            edits = FIGURES if self._administers(slug) else NOTHING
            title = self.documents[project].get("name", name)
            below = at + len(result)
            result.append(self._row(project, "project", name, title, service, at, 3, edits))
            result += [self._queue(queue, service, below, 4) for queue in queues]
        result += [self._queue(queue, service, at, 3) for queue in self.queues.get((service.value, slug, None), ())]
        used = len(result) > 1 or service.value in document.get("quota", {})
        return result if used or self.own is None else []

    def _administers(self, slug: str | None) -> bool:
        return self.own is None or slug in self.own

    def _queue(self, key: str, service: ServiceType, parent: int, level: int) -> Row:
        name = parts_of(key)[0]
        document = self.documents[key]
        may = NOTHING
        if self._administers(tenant_of(key, self.documents)):
            may = RANKING if self.own is None else FIGURES
        row = self._row(key, "queue", name, name, service, parent, level, may)
        base = document.get("card_quota", {})
        row["effective"] = {
            str(self.place[f"card:{card}"]): cards
            for card, cards in self.effective.get(name, {}).items()
            if f"card:{card}" in self.place and cards != base.get(card, 0)
        }
        row["line"] = document.get("business_line", "")
        row["use"] = {
            str(self.place[f"card:{card}"]): number
            for card, number in self.around.in_use.get(name, {}).items()
            if f"card:{card}" in self.place
        }
        return row

    def _row(
        self, key: str, kind: str, name: str, title: str, service: ServiceType, parent: int, level: int, may: int
    ) -> Row:
        path = [] if kind == "queue" else ["quota", service.value]
        figures = self.documents.get(key, {})
        for step in path:
            figures = figures.get(step, {})
        values: dict[str, int] = {
            str(self.place[f"card:{card}"]): number for card, number in figures.get("card_quota", {}).items()
        }
        for field, column, unit in _FIGURES:
            if figures.get(field) is not None:
                values[str(self.place[column])] = figures[field] // unit
        return {
            "key": key or service.value, "kind": kind, "name": name, "title": title, "service": service.value,
            "parent": parent, "level": level, "may": may, "path": path, "values": values, "use": {},
        }  # fmt: skip


def _use_below(result: list[Row]) -> None:
    for row in reversed(result):
        if row["parent"] >= 0:
            above = result[row["parent"]]["use"]
            for column, number in row["use"].items():
                above[column] = above.get(column, 0) + number
