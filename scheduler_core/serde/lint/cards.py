"""What pods ask of cards, and whether a quota by card type can count it."""

from collections.abc import Iterator

from scheduler_core.model.finding import Finding, Severity
from scheduler_core.model.resources import MILLI
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.catalogue import WHOLE_CARD
from scheduler_core.serde.kubernetes.podgroup import read_notes
from scheduler_core.serde.kubernetes.quantities import GPU_MARKS, card_names
from scheduler_core.serde.lint.documents import Template, Workload


def lint_cards(workload: Workload) -> Iterator[Finding]:
    """card.name and card.request against what the containers ask for."""
    for template in workload.templates:
        devices = {name: at for name, at in template.devices().items() if any(mark in name for mark in GPU_MARKS)}
        text = template.annotations.get(keys.CARD_NAME)
        if text is None:
            yield from _unnamed(workload, template, devices)
        else:
            yield from _named(workload, template, card_names(text), devices)
    yield from _card_request(workload)


def _unnamed(workload: Workload, template: Template, devices: dict[str, str]) -> Iterator[Finding]:
    for resource, path in sorted(devices.items())[:1]:
        misplaced = keys.CARD_NAME in workload.annotations and workload.kind != "Pod"
        where = f"; on the {workload.kind} itself it is not read" if misplaced else ""
        yield Finding(
            severity=Severity.WARNING,
            code="card-not-named",
            object=workload.name,
            path=path,
            message=f"asks for {resource} without {keys.CARD_NAME}{where}: no card quota can count it, "
            "and in a queue that has one the gang is not scheduled",
            fix=f"{keys.CARD_NAME}: <card type> in {template.at('metadata.annotations')}",
        )


def _named(
    workload: Workload, template: Template, names: tuple[str, ...], devices: dict[str, str]
) -> Iterator[Finding]:
    path = template.at(f"metadata.annotations[{keys.CARD_NAME!r}]")
    choice = "|".join(names)
    if not names:
        yield _error(
            workload, "card-name-empty", path, f"{keys.CARD_NAME} names no card", "the product name of the card"
        )
        return
    resources = sorted({resource_of(name) for name in names})
    if len(resources) > 1:
        yield _error(
            workload,
            "alternatives-differ",
            path,
            f"{choice}: these cards are counted by {' and '.join(resources)}, and a pod asks for one of them only",
            "alternatives that share one resource name",
        )
        return
    share = template.annotations.get(keys.CARD_MILLI)
    # Which resource counts whole cards of another vendor only the nodes say.
    others = [name for name in devices if not name.startswith(f"{WHOLE_CARD.partition('/')[0]}/")]
    if share is None and resources[0] not in devices and not (resources[0] == WHOLE_CARD and others):
        asked = f"it asks for {', '.join(sorted(devices))}" if devices else "no container asks for a card"
        yield _error(
            workload,
            "card-not-asked",
            path,
            f"names {choice}, which is counted by {resources[0]}, but {asked}",
            f"{resources[0]} in the limits of a container",
        )
    if share is not None and devices:
        yield _error(
            workload,
            "share-and-whole",
            path,
            f"asks for {keys.CARD_MILLI}: {share} of a card and for {', '.join(sorted(devices))}",
            "one of the two",
        )


def _card_request(workload: Workload) -> Iterator[Finding]:
    counts = read_notes(workload.annotations, {}).card_request
    if not counts:
        return
    asked: dict[str, int] = {}
    for template in workload.templates:
        names = card_names(template.annotations.get(keys.CARD_NAME, ""))
        if names:
            key = "|".join(names)
            asked[key] = asked.get(key, 0) + template.replicas * _milli(template, resource_of(names[0]))
    if asked and asked != counts:
        yield Finding(
            severity=Severity.WARNING,
            code="card-request-differs",
            object=workload.name,
            path=f"metadata.annotations[{keys.CARD_REQUEST!r}]",
            message=f"asks admission for {_shown(counts)}, while its pods ask for {_shown(asked)}; "
            "as soon as a pod exists only the pods count",
            fix=f"{keys.CARD_REQUEST}: '{_shown(asked)}'",
        )


def resource_of(card: str) -> str:
    """The Kubernetes resource that counts a card, by its name."""
    if "/mig-" in card:
        return f"nvidia.com/mig-{card.split('/mig-', 1)[1].removesuffix('-mixed')}"
    return f"{WHOLE_CARD}.shared" if "/mps-" in card else WHOLE_CARD


def _milli(template: Template, resource: str) -> int:
    total = 0
    for _, container in template.containers():
        resources = container.get("resources")
        limits = resources.get("limits") if isinstance(resources, dict) else None
        try:
            total += int((limits or {}).get(resource, 0)) * MILLI
        except (TypeError, ValueError):
            return 0
    return total or int(template.annotations.get(keys.CARD_MILLI, "0") or 0)


def _shown(counts: dict[str, int]) -> str:
    inner = ", ".join(f'"{name}": {milli / MILLI:g}' for name, milli in sorted(counts.items()))
    return f"{{{inner}}}"


def _error(workload: Workload, code: str, path: str, message: str, fix: str) -> Finding:
    return Finding(severity=Severity.ERROR, code=code, object=workload.name, path=path, message=message, fix=fix)
