"""A tenant admin decides inside the tenant's ceiling and nowhere else (but see `ceiling_requests`)."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import Scope
from tidesched_web.changes.ceiling_requests import asked_for
from tidesched_web.changes.documents import DEFAULT_PRIORITY, Fault
from tidesched_web.changes.namespaces import granted_elsewhere
from tidesched_web.changes.selectors import TreeReading, tenant_of
from tidesched_web.changes.tree_document import Document, differences, in_order, kind_of, parts_of, restricted
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access, require_scope
from tidesched_web.common.sentences import listed

# What a tenant admin may change of the tenant itself; its quota is the ceiling that others set.
_OWN_TENANT = ("/name", "/description")
# Members of a queue's document that say whose it is.
_OWNERS = frozenset({"tenant", "project", "business_line"})
# What an admin makes in a tenant; all of it is the work of each session, and of each plan.
_MADE = ("queue", "project", "business-line", "grant")
# These rank a queue against those of other tenants.
_RANKING = ("/parent", "/deserved", "/guarantee")


def require_writer(access: Access) -> None:
    if not access.administers and not access.admin_of:
        raise DomainError("permission_denied", _("Only platform admins and tenant admins may change quota."))
    require_scope(access, Scope.QUOTA_WRITE)


def require_authority(
    access: Access,
    reading: TreeReading,
    after: Mapping[str, Document],
    edits: Mapping[str, Any],
    *,
    asking: bool = False,
) -> None:
    """Refuse edits of objects that are not the caller's as if they were not there. ``asking``: for more quota."""
    require_writer(access)
    if access.administers:
        return
    _refuse_foreign(access, reading, after, edits)
    asked = {(found.object, found.field) for found in asked_for(reading.documents, after, edits)} if asking else set()
    faults = [
        *_beyond(reading.documents, after, edits, asked),
        *_too_many(reading.documents, after, edits),
        *_closing_grants(reading.documents, after),
        *_of_others(reading.documents, after, edits),
    ]
    if faults:
        errors = [fault.as_json() for fault in faults]
        raise DomainError("permission_denied", faults[0].detail, {"errors": errors})


def _refuse_foreign(
    access: Access, reading: TreeReading, after: Mapping[str, Document], edits: Mapping[str, Any]
) -> None:
    own = {slug for slug, pk in reading.tenant_ids.items() if pk in access.admin_of}
    # Grants last: those that go with a queue were not named by the caller, and name its namespaces.
    for key in sorted(edits, key=lambda key: (kind_of(key) == "grant", key)):
        before = reading.documents.get(key)
        kind = kind_of(key)
        if kind in ("rules", "card-type", "priority-class", "tide-plan"):
            text = _("%(object)s belongs to the cluster: only a platform admin may change it.")
            raise DomainError("permission_denied", text % {"object": key})
        named = _OWNERS & (edits[key] or {}).keys()  # as an owner's, whether it is there or not
        if not named and tenant_of(key, reading.documents if before is not None else after) not in own:
            # Of another tenant or not there at all: the answer does not tell which.
            raise DomainError("not_found", _("You see no object %(object)s.") % {"object": key})
        if key in after and tenant_of(key, after) not in own:
            text = _("%(object)s would belong to another tenant; you administer %(own)s.")
            raise DomainError("permission_denied", text % {"object": key, "own": listed(sorted(own)) or _("no tenant")})
        if before is not None and tenant_of(key, reading.documents) not in own:
            raise DomainError("not_found", _("You see no object %(object)s.") % {"object": key})


def beyond_tenants(reading: TreeReading, after: Mapping[str, Document], edits: Mapping[str, Any]) -> bool:
    """Whether edits are a platform admin's alone, even for an admin of all tenants that they touch."""
    slugs, _wide = touched_tenants(reading, after, edits)
    admin = frozenset(reading.tenant_ids[slug] for slug in slugs if slug in reading.tenant_ids)
    if not admin:
        return True
    try:
        _refuse_foreign(Access(actor="", tenant_ids=admin, admin_of=admin), reading, after, edits)
    except DomainError:
        return True
    faults = chain(
        _closing_grants(reading.documents, after),
        _too_many(reading.documents, after, edits),
        _beyond(reading.documents, after, edits, ()),
        _of_others(reading.documents, after, edits),
    )
    return next(faults, None) is not None  # the first says it


def _beyond(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    edits: Mapping[str, Any],
    asked: Collection[tuple[str, str]],
) -> Iterator[Fault]:
    """Fields of a tenant admin's own objects that only a platform admin may move; ``asked`` are left out."""
    for key in in_order(key for key in edits if kind_of(key) in ("tenant", "queue")):
        yield from _beyond_in(key, before, after, asked)


def _beyond_in(
    key: str, before: Mapping[str, Document], after: Mapping[str, Document], asked: Collection[tuple[str, str]]
) -> Iterator[Fault]:
    for found in differences(restricted(before, [key]), restricted(after, [key])):
        kind, field = kind_of(found.object), found.field
        if kind == "tenant" and field not in _OWN_TENANT and (found.object, field) not in asked:
            yield _denied(found.object, field, _("A tenant's own quota and rules are set by platform admins."))
        if kind != "queue" or found.object not in after:
            continue
        # What could not be read of the edit is not there; the plan names it.
        queue, old = after[found.object], before.get(found.object, {})
        service_type = queue.get("service_type", "")
        if field.startswith(_RANKING):
            yield _denied(found.object, field, _("This ranks the queue against other tenants': ask a platform admin."))
        elif field == "/weight" and queue.get("weight", 0) > max(1, old.get("weight", 1)):
            yield _denied(found.object, field, _("Only a platform admin may raise a queue's weight."))
        elif field == "/priority" and queue.get("priority", 0) > max(
            old.get("priority", 0), DEFAULT_PRIORITY.get(service_type, 0)
        ):
            yield _denied(found.object, field, _("Only a platform admin may raise a queue's priority."))
        elif field == "/reclaimable" and service_type == "training" and not queue.get("reclaimable", True):
            yield _denied(found.object, field, _("Training gives back: only a platform admin may exempt a queue."))


def _too_many(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[Fault]:
    """New objects of a kind beyond those that the admins of one tenant make by themselves; one fault for each kind."""
    new: dict[tuple[str, str | None], str] = {}
    for key in sorted(edits):
        if key in after and key not in before and kind_of(key) in _MADE:
            new.setdefault((kind_of(key), tenant_of(key, after)), key)
    if not new:
        return
    counts = Counter((kind_of(key), tenant_of(key, after)) for key in after if kind_of(key) in _MADE)
    most = settings.KEPT_OBJECTS_OF_TENANT
    for kept, key in new.items():
        if counts[kept] > most:
            said = _(
                "With this the tenant would have %(count)d of this kind in the cluster; its admins make up to "
                "%(most)d. A platform admin can make more."
            )
            yield replace(_denied(key, "", said % {"count": counts[kept], "most": most}), limit=most)


def _closing_grants(before: Mapping[str, Document], after: Mapping[str, Document]) -> Iterator[Fault]:
    """The first grant of a cluster closes all its other queues, the last one opens them: not one tenant's act."""
    had = [key for key in before if kind_of(key) == "grant"]
    has = [key for key in after if kind_of(key) == "grant"]
    if bool(had) != bool(has):
        key = (had or has)[0]
        said = _("The first grant of a cluster closes its other queues, the last one opens them: ask a platform admin.")
        yield _denied(key, "", said)


def _of_others(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[Fault]:
    """A namespace of others: its gangs that are sent to a wrong queue would be shown to this tenant's people."""
    for key, _owners in granted_elsewhere(before, after, edits):
        said = _(
            "Namespace %(namespace)s belongs to another tenant or to the platform: "
            "ask a platform admin, who may share it."
        )
        yield _denied(key, "", said % {"namespace": parts_of(key)[0]})


def _denied(key: str, field: str, detail: str) -> Fault:
    return Fault(key, field, "permission_denied", detail)


def touched_tenants(
    reading: TreeReading, after: Mapping[str, Document], edits: Mapping[str, Any]
) -> tuple[set[str], bool]:
    slugs: set[str] = set()
    wide = False
    for key in edits:
        found = {tenant_of(key, documents) for documents in (reading.documents, after) if key in documents}
        slugs |= {slug for slug in found if slug is not None}
        wide = wide or None in found or kind_of(key) == "tide-plan"
        if kind_of(key) == "tenant":
            slugs.add(parts_of(key)[0])
    return slugs, wide
