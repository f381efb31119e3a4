import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from django.utils.translation import gettext as _

from tidesched_web.changes.authority import beyond_tenants, require_authority, touched_tenants
from tidesched_web.changes.card_aliases import canonical_cards
from tidesched_web.changes.ceiling_requests import NO_ROOM, asked_for
from tidesched_web.changes.documents import REPLACE, RULES, Fault, Faults, canonical
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.namespaces import PLATFORM, granted_elsewhere
from tidesched_web.changes.object_differences import ObjectDifference, object_differences
from tidesched_web.changes.selectors import (
    Surroundings,
    TreeReading,
    reading_of,
    surroundings_of,
    tenant_of,
    tree_version,
)
from tidesched_web.changes.tree_check import breaches, completed
from tidesched_web.changes.tree_document import (
    Difference,
    Documents,
    Edits,
    changed_since,
    differences,
    key_of,
    kind_of,
    merged,
    parts_of,
    pointer,
    restricted,
    touches,
    unescaped,
)
from tidesched_web.changes.tree_references import drained, misleading_names, references
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.card_names import card_label
from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import Hints, cut
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import listed
from tidesched_web.quota.push_selectors import limited_cards
from tidesched_web.quota.tide_overlaps import overlaps_of_each

MOST_EDITS = 20_000


@dataclass(frozen=True)
class Plan:
    reading: TreeReading
    around: Surroundings
    edits: Edits
    after: Documents
    # The first of them, and how many more there are.
    faults: list[Fault]
    more_faults: int
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
    # Those that name objects of several tenants: for who sees everything.
    warnings_of_all: list[dict[str, Any]] = field(default_factory=list)
    # Quota above a tenant's own that is asked for, not made.
    asked: list[Difference] = field(default_factory=list)

    @property
    def before(self) -> Documents:
        return self.reading.documents

    @property
    def readers(self) -> Access | None:
        """The rights that all readers of a change of these edits have: what is kept with it is for each of them."""
        if self.platform_wide or not self.tenant_ids:
            return None
        return Access(actor="", tenant_ids=frozenset(self.tenant_ids))

    def kept(self, *, base_version: int) -> dict[str, Any]:
        return self.document(base_version=base_version, access=self.readers)

    def document(self, *, base_version: int, access: Access | None) -> dict[str, Any]:
        return {
            "base_version": base_version,
            "tree_version": self.tree_version,
            "fields": [self._with_use(found) for found in self.fields],
            "objects": [found.as_json() for found in self.objects],
            "errors": self.errors(access),
            "more_errors": self.more_faults,
            "warnings": [*self.warnings, *(self.warnings_of_all if access is None or access.everything else ())],
            "stale": [found.as_json() for found in self.stale],
            "merged": [found.as_json() for found in self.merged],
            "asked": [found.as_json() for found in self.asked],
            "approval": {"due": bool(self.approval), "why": self.approval},
            "impact": None,
        }

    def _with_use(self, found: Difference) -> dict[str, Any]:
        card = _card_of(found.field)
        if card is None:
            return found.as_json()
        kind = kind_of(found.object)
        parts = parts_of(found.object)
        if kind == "queue":
            used = self.around.in_use.get(parts[0], {}).get(card, 0.0)
        else:
            project = None if kind == "tenant" else parts[1]
            used = self._owners_use.get((parts[0], project, found.field.split("/")[2], card), 0.0)
        return found.as_json() | {"in_use": used}

    @cached_property
    def _owners_use(self) -> Mapping[tuple[str | None, str | None, str, str], float]:
        found: dict[tuple[str | None, str | None, str, str], float] = defaultdict(float)
        for name, used in self.around.in_use.items():
            queue = self.before.get(key_of("queue", name))
            if queue is None:
                continue
            tenant, project = queue.get("tenant"), queue.get("project")
            for card, count in used.items():
                for owner in {None, project}:
                    found[tenant, owner, queue["service_type"], card] += count
        return found

    def errors(self, access: Access | None) -> list[dict[str, Any]]:
        return [self.seen(fault, access) for fault in self.faults]

    def seen(self, fault: Fault, access: Access | None) -> dict[str, Any]:
        found = fault.as_json()
        whole = access is None or access.everything
        if fault.sibling and not in_sight(fault.sibling, self.reading, self.after, access):
            found["sibling"] = found["sibling_object"] = None
        if fault.of_all and not whole:
            # What all tenants have together is not for a tenant's eyes.
            return found | {"detail": _no_room(fault), "requested": None, "limit": None}
        said = [fault.detail]
        if fault.plans and whole:
            said.append(fault.plans)
        if fault.remedy and all(in_sight(name, self.reading, self.after, access) for name in fault.remedy_names):
            said.append(fault.remedy)
        return found | {"detail": " ".join(said)}


def in_sight(key: str, reading: TreeReading, documents: Documents, access: Access | None) -> bool:
    if access is None or access.everything:
        return True
    owner = tenant_of(key, documents)
    return owner is not None and reading.tenant_ids.get(owner) in access.tenant_ids


def _no_room(fault: Fault) -> str:
    card, last = _card_of(fault.field), fault.field.rpartition("/")[2]
    what = card_label(card) if card else {"cpu_milli": _("CPU"), "memory_bytes": _("Memory")}.get(last, last)
    said = _("The cluster has no more %(what)s to give out: a platform admin has to make room first.")
    if fault.code == "exceeds_at_moment":
        said = _(
            "At an hour that a tide plan turns, the cluster has no more %(what)s to give out: a platform admin has to "
            "make room first."
        )
    return said % {"what": what}


def _card_of(field_pointer: str) -> str | None:
    before, found, card = field_pointer.rpartition("/card_quota/")
    return unescaped(card) if found and "/card_quota/" not in before else None


def checked_edits(edits: Any) -> Edits:
    if not isinstance(edits, Mapping):
        raise DomainError.for_field("/edits", _("Edits are a map: object → merge patch of its document."))
    if len(edits) > MOST_EDITS:
        text = _("One change edits at most %(most)d objects; this one %(count)d.")
        raise DomainError.for_field("/edits", text % {"most": MOST_EDITS, "count": len(edits)})
    for key, patch in edits.items():
        try:
            parts_of(str(key))
        except ValueError as error:
            raise DomainError.for_field(pointer("edits", cut(str(key))), str(error)) from None
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
    asking: bool = False,
    reader: Access | None = None,
) -> Plan:
    """Laid over the tree of now, figure by figure: others' figures are no conflict. ``asking``: quota is asked for, so
    approval is due; ``reader``: who reads the plan, where it is not ``access``, whose right to edit is asked.
    """
    edits = checked_edits(edits)
    # The version first: what is read afterwards is at least as new.
    version = tree_version(cluster) if version is None else version
    reading = reading or reading_of(cluster)
    edits = completed(reading.documents, canonical_cards(edits, reading.card_aliases))
    faults, hints = Faults(), Hints()
    after = _after(reading.documents, edits, faults, hints)
    if access is not None:
        require_authority(access, reading, after, edits, asking=asking)
    asked = asked_for(reading.documents, after, edits) if asking else []
    leaving = [parts_of(key)[0] for key, patch in edits.items() if patch is None and kind_of(key) == "queue"]
    around = surroundings_of(cluster, reading, leaving)
    _find_faults(faults, hints, reading, after, edits, around, now=cluster.clock(), reader=reader or access)
    moved = changed_since(base, reading.documents) if base is not None else []
    slugs, wide = touched_tenants(reading, after, edits)
    objects = [] if faults.kept else _objects(cluster, reading, after, edits, around)
    plan = Plan(
        reading=reading,
        around=around,
        edits=edits,
        after=after,
        faults=faults.kept,
        more_faults=faults.more,
        fields=differences(restricted(reading.documents, edits), restricted(after, edits)),
        objects=objects,
        tree_version=version,
        approval=_approval(cluster, reading.documents, slugs, asked),
        tenant_ids=sorted(reading.tenant_ids[slug] for slug in slugs if slug in reading.tenant_ids),
        platform_wide=wide or any(slug not in reading.tenant_ids for slug in slugs),
        platform_only=beyond_tenants(reading, after, edits),
        stale=[found for found in moved if touches(edits, found)],
        merged=[found for found in moved if not touches(edits, found)],
        asked=asked,
    )
    plan.warnings.extend(_warnings(cluster, plan))
    plan.warnings_of_all.extend(_shared_namespaces(plan))
    return plan


def _find_faults(
    faults: Faults, hints: Hints, reading: TreeReading, after: Documents, edits: Edits, around: Surroundings, *,
    now: dt.datetime, reader: Access | None,
) -> None:  # fmt: skip
    sees = partial(in_sight, reading=reading, documents=after, access=reader)
    known = references(
        reading.documents, after, edits, reading.card_names, shown=reading.hardware, hints=hints, sees=sees
    )
    faults.add(known)
    faults.add(misleading_names(reading.documents, after, edits))
    faults.add(drained(edits, around.live_gangs))
    if not faults.kept:
        sums = breaches(reading.documents, after, hardware=around.hardware, in_use=around.in_use, now=now)
        faults.add(sums)


def _objects(
    cluster: Cluster, reading: TreeReading, after: Documents, edits: Edits, around: Surroundings
) -> list[ObjectDifference]:
    now, limited = cluster.clock(), limited_cards(cluster)
    return object_differences(
        reading.documents, after, edits, now, limited, in_use=around.in_use, hardware=around.hardware
    )


def _after(before: Documents, edits: Edits, faults: Faults, hints: Hints) -> Documents:
    for key, patch in edits.items():
        if patch is not None and kind_of(key) == "priority-class":
            faults.add(_replace_faults(key, patch))
    plain = {
        key: {name: value for name, value in patch.items() if name != REPLACE}
        if patch is not None and kind_of(key) == "priority-class"
        else patch
        for key, patch in edits.items()
    }
    after = merged(before, plain)
    for key, patch in plain.items():
        if patch is not None:
            after[key], found = canonical(key, after[key], hints)
            faults.add(found)
    for key, patch in edits.items():
        if patch is None and key not in before:
            faults.add([Fault(key, "", "unknown_object", _("There is no %(object)s.") % {"object": key})])
    return after


def _replace_faults(key: str, patch: Mapping[str, Any]) -> list[Fault]:
    if isinstance(patch.get(REPLACE), bool | None):
        return []
    return [Fault(key, pointer(REPLACE), "invalid", _("This has to be true or false."))]


def after_of(before: Documents, edits: Edits) -> Documents:
    return _after(before, edits, Faults(), Hints())


def _approval(
    cluster: Cluster, before: Documents, slugs: set[str], asked: Iterable[Difference]
) -> list[dict[str, str]]:
    demands = before[RULES]["approval_required"]
    why = [{"kind": "cluster", "name": cluster.slug}] if demands else []
    demanding = [slug for slug in sorted(slugs) if before.get(f"tenant/{slug}", {}).get("approval_required")]
    why += [{"kind": "tenant", "name": slug} for slug in demanding]
    return why + [{"kind": "ceiling", "name": parts_of(key)[0]} for key in sorted({one.object for one in asked})]


def _warnings(cluster: Cluster, plan: Plan) -> list[dict[str, Any]]:
    """What is allowed and should be seen: a quota below its use evicts no gang by itself, a close lets none in."""
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
    found += _overlapping(cluster, plan)
    if cluster.mode == ClusterMode.OBSERVE and plan.objects:
        detail = _("The cluster is in mode observe: the intent changes here, nothing is sent to the cluster.")
        found.append({"object": "", "field": "", "code": "not_sent", "detail": detail})
    return found


def _shared_namespaces(plan: Plan) -> Iterator[dict[str, Any]]:
    for key, owners in granted_elsewhere(plan.before, plan.after, plan.edits):
        said = _("Namespace %(namespace)s belongs to tenant %(tenants)s: with this, its pods may use this queue too.")
        if owners == {PLATFORM}:
            said = _("Namespace %(namespace)s belongs to the platform: with this, its pods may use this queue too.")
        detail = said % {"namespace": parts_of(key)[0], "tenants": listed(sorted(owners - {PLATFORM}))}
        yield {"object": key, "field": "", "code": "namespace_of_tenant", "detail": detail}


def _overlapping(cluster: Cluster, plan: Plan) -> list[dict[str, Any]]:
    """What the edited tide plans share with others that are on; said as if each were on, unless it is switched off."""
    keys = [key for key, patch in plan.edits.items() if kind_of(key) == "tide-plan" and patch is not None]
    if not keys or plan.faults:
        return []
    documents = {parts_of(key)[0]: each for key, each in plan.after.items() if kind_of(key) == "tide-plan"}
    edited = {
        parts_of(key)[0]: key
        for key in keys
        if plan.after[key]["enabled"] or not plan.before.get(key, {}).get("enabled")
    }
    return [
        {"object": edited[name], "field": "/position", **one.as_json()}
        for name, shared in overlaps_of_each(documents, edited, cluster.clock()).items()
        for one in shared
    ]


# Faults of a figure by itself, whatever else is in the tree.
FORM_FAULTS = frozenset({"invalid", "invalid_name", "unknown_field"})
_BREACHES = ("exceeds_", "below_children", "tide_")


def _problem_of(code: str) -> str:
    if code.startswith(_BREACHES):
        return "quota_breach"
    known = {"not_drained": "in_use"} | {name: name for name in ("in_use", "misleading_name", "unknown_card")}
    return known.get(code) or ("invalid" if code in FORM_FAULTS else "against_rules")


def require_sound(plan: Plan, *, access: Access | None, asked: bool = False) -> None:
    """``asked``: they are only sent, so quota that is asked for may lack room still."""
    faults = [fault for fault in plan.faults if not (asked and plan.asked and fault.code in NO_ROOM)]
    if faults or plan.more_faults:
        # What breaks the tree is said with its own status only where nothing simpler is wrong.
        first = min(faults or plan.faults, key=lambda fault: _problem_of(fault.code) == "quota_breach")
        detail = plan.seen(first, access)["detail"]
        raise DomainError(_problem_of(first.code), detail, _errors(plan, plan.errors(access)))


def require_form(plan: Plan, *, access: Access | None) -> None:
    """Only what no document can hold; what goes against the rules of the tree stays in the plan."""
    wrong = [fault for fault in plan.faults if fault.code in FORM_FAULTS]
    if wrong:
        raise DomainError("invalid", wrong[0].detail, _errors(plan, [plan.seen(fault, access) for fault in wrong]))


def _errors(plan: Plan, errors: list[dict[str, Any]]) -> dict[str, Any]:
    return {"errors": errors, **({"more_errors": plan.more_faults} if plan.more_faults else {})}


def require_fresh(plan: Plan) -> None:
    if plan.stale:
        text = _("%(count)d figures that this change touches were changed since it was made; look at them first.")
        changed = [found.as_json() for found in plan.stale]
        extra = {"changed_since": changed, "tree_version": plan.tree_version}
        raise DomainError("conflict", text % {"count": len(changed)}, extra)


def check(*, cluster: Cluster, edits: Mapping[str, Any], access: Access, well_formed: bool = False) -> dict[str, Any]:
    """What edits would do, for typing and for dry runs; nothing is stored. ``well_formed``: see `require_form`."""
    plan = work_out(cluster, edits, access=access, asking=not access.administers)
    if well_formed:
        require_form(plan, access=access)
    return plan.document(base_version=plan.tree_version, access=access)


def plan_of(change: QuotaChange, reader: Access) -> Plan:
    return work_out(
        change.cluster, change.edits, access=None, base=change.base, asking=change.asks_beyond, reader=reader
    )
