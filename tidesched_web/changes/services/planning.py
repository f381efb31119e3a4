"""What edits would do: differences, objects, errors, warnings, who has to approve. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from tidesched_web.changes.authority import beyond_tenants, require_authority, touched_tenants
from tidesched_web.changes.card_aliases import canonical_cards
from tidesched_web.changes.documents import REPLACE, RULES, Fault, canonical
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.object_differences import ObjectDifference, object_differences
from tidesched_web.changes.selectors import (
    Surroundings,
    TreeReading,
    reading_of,
    surroundings_of,
    tenant_of,
    tree_version,
)
from tidesched_web.changes.tree_check import breaches, completed, drained, references
from tidesched_web.changes.tree_document import (
    Difference,
    Documents,
    Edits,
    changed_since,
    differences,
    kind_of,
    merged,
    parts_of,
    pointer,
    restricted,
    touches,
)
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.quota.limited_selectors import limited_cards

MOST_EDITS = 20_000


@dataclass(frozen=True)
class Plan:
    """Edits worked out against one reading of the tree."""

    reading: TreeReading
    around: Surroundings
    edits: Edits
    after: Documents
    faults: list[Fault]
    fields: list[Difference]
    objects: list[ObjectDifference]
    tree_version: int
    approval: list[dict[str, str]]
    tenant_ids: list[int]
    platform_wide: bool
    platform_only: bool
    # What others changed since the base was read: figures that these edits touch too, and others of the same objects.
    stale: list[Difference] = field(default_factory=list)
    merged: list[Difference] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def before(self) -> Documents:
        return self.reading.documents

    def document(self, *, base_version: int, access: Access | None) -> dict[str, Any]:
        """The plan as JSON; names of objects that the caller does not see are left out."""
        return {
            "base_version": base_version,
            "tree_version": self.tree_version,
            "fields": [self._with_use(found) for found in self.fields],
            "objects": [found.as_json() for found in self.objects],
            "errors": self.errors(access),
            "warnings": self.warnings,
            "stale": [found.as_json() for found in self.stale],
            "merged": [found.as_json() for found in self.merged],
            "approval": {"due": bool(self.approval), "why": self.approval},
            "impact": None,
        }

    def _with_use(self, found: Difference) -> dict[str, Any]:
        """A difference of a card quota also says how many are in use now."""
        card = _card_of(found.field)
        if card is None:
            return found.as_json()
        kind = kind_of(found.object)
        parts = parts_of(found.object)
        if kind == "queue":
            used = self.around.in_use.get(parts[0], {}).get(card, 0.0)
        else:
            service_type = found.field.split("/")[2]
            used = sum(
                self.around.in_use.get(parts_of(key)[0], {}).get(card, 0.0)
                for key, document in self.before.items()
                if kind_of(key) == "queue"
                and document["service_type"] == service_type
                and document.get("tenant") == parts[0]
                and (kind == "tenant" or document.get("project") == parts[1])
            )
        return found.as_json() | {"in_use": used}

    def errors(self, access: Access | None) -> list[dict[str, Any]]:
        """All faults as JSON, as far as the caller may know of them."""
        return [self.seen(fault, access) for fault in self.faults]

    def seen(self, fault: Fault, access: Access | None) -> dict[str, Any]:
        found = fault.as_json()
        if access is not None and not access.everything and fault.sibling:
            owner = tenant_of(fault.sibling, self.after)
            if owner is None or self.reading.tenant_ids.get(owner) not in access.tenant_ids:
                found["sibling"] = found["sibling_object"] = None
        return found


def _card_of(field_pointer: str) -> str | None:
    before, found, card = field_pointer.rpartition("/card_quota/")
    return card.replace("~1", "/").replace("~0", "~") if found and "/card_quota/" not in before else None


def checked_edits(edits: Any) -> Edits:
    """Edits of the right shape.

    Raises:
        DomainError: ``invalid``, with the place.
    """
    if not isinstance(edits, Mapping):
        raise DomainError.for_field("/edits", _("Edits are a map: object → merge patch of its document."))
    if len(edits) > MOST_EDITS:
        text = _("One change edits at most %(most)d objects; this one %(count)d.")
        raise DomainError.for_field("/edits", text % {"most": MOST_EDITS, "count": len(edits)})
    for key, patch in edits.items():
        try:
            parts_of(str(key))
        except ValueError as error:
            raise DomainError.for_field(pointer("edits", str(key)), str(error)) from None
        if patch is not None and not isinstance(patch, Mapping):
            text = _("A merge patch of a document is a map, or null to delete the object.")
            raise DomainError.for_field(pointer("edits", key), text)
    return {str(key): edits[key] for key in sorted(edits)}


def work_out(
    cluster: Cluster,
    edits: Mapping[str, Any],
    *,
    access: Access | None,
    base: Mapping[str, Any] | None = None,
    reading: TreeReading | None = None,
    version: int | None = None,
) -> Plan:
    """Plan ``edits``. ``base`` holds the documents that a draft was made on; what moved since becomes ``stale``.

    Others' figures of the same objects are no conflict: the edits are laid over the tree of now, figure by figure.

    Raises:
        DomainError: the edits are malformed, or the caller may not make them.
    """
    # The version first: what is read afterwards is at least as new.
    version = tree_version(cluster) if version is None else version
    reading = reading or reading_of(cluster)
    edits = completed(reading.documents, canonical_cards(checked_edits(edits), reading.card_aliases))
    after, faults = _after(reading.documents, edits)
    if access is not None:
        require_authority(access, reading, after, edits)
    leaving = [parts_of(key)[0] for key, patch in edits.items() if patch is None and kind_of(key) == "queue"]
    around = surroundings_of(cluster, reading, leaving)
    faults += references(reading.documents, after, edits, reading.card_names, shown=reading.hardware)
    faults += drained(edits, around.live_gangs)
    if not faults:
        faults += breaches(
            reading.documents,
            after,
            hardware=around.hardware,
            in_use=around.in_use,
            now=cluster.clock(),
        )
    moved = changed_since(base, reading.documents) if base is not None else []
    slugs, wide = touched_tenants(reading, after, edits)
    objects = (
        object_differences(reading.documents, after, edits, cluster.clock(), limited_cards(cluster))
        if not faults
        else []
    )
    plan = Plan(
        reading=reading,
        around=around,
        edits=edits,
        after=after,
        faults=faults,
        fields=differences(restricted(reading.documents, edits), restricted(after, edits)),
        objects=objects,
        tree_version=version,
        approval=_approval(cluster, reading.documents, slugs),
        tenant_ids=sorted(reading.tenant_ids[slug] for slug in slugs if slug in reading.tenant_ids),
        platform_wide=wide or any(slug not in reading.tenant_ids for slug in slugs),
        platform_only=beyond_tenants(reading, after, edits),
        stale=[found for found in moved if touches(edits, found)],
        merged=[found for found in moved if not touches(edits, found)],
    )
    plan.warnings.extend(_warnings(cluster, plan))
    return plan


def _after(before: Documents, edits: Edits) -> tuple[Documents, list[Fault]]:
    """The map after the edits, its edited documents in canonical form."""
    faults: list[Fault] = []
    for key, patch in edits.items():
        if patch is None and key not in before:
            faults.append(Fault(key, "", "unknown_object", _("There is no %(object)s.") % {"object": key}))
        elif patch is not None and kind_of(key) == "priority-class":
            faults += _replace_faults(key, patch)
    plain = {
        key: {name: value for name, value in patch.items() if name != REPLACE}
        if patch is not None and kind_of(key) == "priority-class"
        else patch
        for key, patch in edits.items()
    }
    after = merged(before, plain)
    for key, patch in plain.items():
        if patch is not None:
            after[key], found = canonical(key, after[key])
            faults += found
    return after, faults


def _replace_faults(key: str, patch: Mapping[str, Any]) -> list[Fault]:
    """No document has this member, so it is looked at here."""
    if isinstance(patch.get(REPLACE), bool | None):
        return []
    return [Fault(key, pointer(REPLACE), "invalid", _("This has to be true or false."))]


def after_of(before: Documents, edits: Edits) -> Documents:
    """The documents that sound edits make of ``before``."""
    return _after(before, edits)[0]


def _approval(cluster: Cluster, before: Documents, slugs: set[str]) -> list[dict[str, str]]:
    """Who demands that a second person looks at it."""
    demands = before[RULES]["approval_required"]
    why = [{"kind": "cluster", "name": cluster.slug}] if demands else []
    demanding = [slug for slug in sorted(slugs) if before.get(f"tenant/{slug}", {}).get("approval_required")]
    return why + [{"kind": "tenant", "name": slug} for slug in demanding]


def _warnings(cluster: Cluster, plan: Plan) -> list[dict[str, Any]]:
    """What is allowed and should be seen: a quota below its use evicts nobody by itself, a close lets nobody in."""
    found: list[dict[str, Any]] = []

    def warn(difference: Difference, code: str, detail: str, **figures: Any) -> None:
        place = {"object": difference.object, "field": difference.field}
        found.append({**place, "code": code, "detail": detail, **figures})

    for difference in plan.fields:
        card = _card_of(difference.field)
        if card is not None and kind_of(difference.object) == "queue" and difference.object in plan.after:
            used = plan.around.in_use.get(parts_of(difference.object)[0], {}).get(card, 0.0)
            if used > (difference.after or 0):
                detail = _("%(used)g are in use, the quota becomes %(quota)d. No gang is evicted by that alone.")
                figures = {"used": used, "quota": difference.after or 0}
                warn(difference, "below_use", detail % figures, in_use=used, quota=difference.after or 0)
        if difference.field == "/value" and difference.before is not None and difference.after is not None:
            detail = _("The class is deleted and made anew; running pods keep the value %(value)s.")
            warn(difference, "replaced", detail % {"value": difference.before})
    if cluster.mode == ClusterMode.OBSERVE and plan.objects:
        detail = _("The cluster is in mode observe: the intent changes here, nothing is sent to the cluster.")
        found.append({"object": "", "field": "", "code": "not_sent", "detail": detail})
    return found


# Faults of a figure by itself, whatever else is in the tree.
FORM_FAULTS = frozenset({"invalid", "invalid_name", "unknown_field"})
_BREACHES = ("exceeds_", "below_children", "tide_")


def _problem_of(code: str) -> str:
    """Which application error the first fault makes of a plan."""
    if code.startswith(_BREACHES):
        return "quota_breach"
    known = {"in_use": "in_use", "not_drained": "in_use", "unknown_card": "unknown_card"}
    return known.get(code) or ("invalid" if code in FORM_FAULTS else "against_rules")


def require_sound(plan: Plan, *, access: Access | None) -> None:
    """Refuse edits with errors.

    Raises:
        DomainError: ``quota_breach`` (422) or what is wrong; the first error in words, all of them with their figures.
    """
    if plan.faults:
        # What breaks the tree is said with its own status only where nothing simpler is wrong.
        first = min(plan.faults, key=lambda fault: _problem_of(fault.code) == "quota_breach")
        raise DomainError(_problem_of(first.code), first.detail, {"errors": plan.errors(access)})


def require_form(plan: Plan, *, access: Access | None) -> None:
    """Refuse edits that no document of their kind can hold; what goes against the rules of the tree stays in the plan.

    Raises:
        DomainError: ``invalid``, with the place of each.
    """
    wrong = [fault for fault in plan.faults if fault.code in FORM_FAULTS]
    if wrong:
        raise DomainError("invalid", wrong[0].detail, {"errors": [plan.seen(fault, access) for fault in wrong]})


def require_fresh(plan: Plan) -> None:
    """Refuse to build on a base that moved.

    Raises:
        DomainError: ``conflict`` (409) with what changed since, figure by figure.
    """
    if plan.stale:
        text = _("%(count)d figures that this change touches were changed since it was made; look at them first.")
        changed = [found.as_json() for found in plan.stale]
        extra = {"changed_since": changed, "tree_version": plan.tree_version}
        raise DomainError("conflict", text % {"count": len(changed)}, extra)


def check(*, cluster: Cluster, edits: Mapping[str, Any], access: Access, well_formed: bool = False) -> dict[str, Any]:
    """What edits would do, for typing and for dry runs; nothing is stored. ``well_formed``: see `require_form`."""
    plan = work_out(cluster, edits, access=access)
    if well_formed:
        require_form(plan, access=access)
    return plan.document(base_version=plan.tree_version, access=access)


def plan_of(change: QuotaChange, access: Access | None) -> Plan:
    """A change worked out against the tree of now."""
    return work_out(change.cluster, change.edits, access=access, base=change.base)
