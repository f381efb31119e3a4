from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.audit.services import Fact
from tidesched_web.changes.selectors import TreeReading, tenant_of
from tidesched_web.changes.tree_document import PLATFORM, Document, Documents, key_of, kind_of, parts_of
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.locking import require_transaction

# Up to so many rows single statements cost less than building one for all.
_FEW = 16
_R = TypeVar("_R", bound=models.Model)
_O = TypeVar("_O", Project, BusinessLine)


class Gone(Exception):
    """What is a tenant's may be deleted through the tree of another cluster: the lock of one tree does not hold it."""


class _There(dict[Any, Any]):
    def __missing__(self, key: object) -> Any:
        raise Gone(key)


@dataclass
class Rows:
    """One write under way. Rows are found by the keys of their documents; locks are taken in order of primary key."""

    cluster: Cluster
    reading: TreeReading
    after: Documents
    keys: list[str]
    row_of: dict[str, Any] = field(default_factory=_There)
    _told: dict[str, Fact] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_transaction()
        self._tenants: dict[str, Tenant] = _There()
        # What was read under the lock of the tree need not be read again.
        self._card_types: Mapping[str, CardType] | None = self.reading.card_rows

    @property
    def before(self) -> Documents:
        return self.reading.documents

    def of_kind(self, kind: str) -> list[str]:
        return [key for key in self.keys if kind_of(key) == kind]

    def made(self, kind: str) -> Iterator[tuple[str, Document]]:
        return ((key, self.after[key]) for key in self.of_kind(kind) if key not in self.before)

    def changed(self, kind: str) -> Iterator[tuple[str, Document]]:
        return ((key, self.after[key]) for key in self.of_kind(kind) if key in self.before and key in self.after)

    def gone(self, kind: str) -> list[str]:
        return [key for key in self.of_kind(kind) if key not in self.after]

    def locked(self, rows: QuerySet[_R]) -> list[_R]:
        return list(rows.order_by("pk").select_for_update(no_key=True, of=("self",)))

    def require(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key not in self.row_of:
                raise Gone(key)

    # -- what other rows refer to ----------------------------------------------------------------------------------

    def tenant(self, slug: str | None) -> Tenant | None:
        if slug is None or slug == PLATFORM:
            return None
        if slug not in self._tenants:
            wanted = {tenant_of(key, docs) for key in self.keys for docs in (self.before, self.after) if key in docs}
            found = Tenant.objects.filter(slug__in=[slug, *(name for name in wanted if name)])
            self._tenants |= {tenant.slug: tenant for tenant in found}
        return self._tenants[slug]

    def note_tenant(self, tenant: Tenant) -> None:
        self._tenants[tenant.slug] = tenant

    def below(self, model: type[_O], wanted: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], _O]:
        """Projects or business lines by slugs of tenant (or the platform's sign) and their own."""
        among = Q(pk__in=[])
        for tenant, slug in sorted(wanted):
            among |= Q(tenant__slug=None if tenant == PLATFORM else tenant, slug=slug)
        found = model._base_manager.select_related("tenant").filter(among) if wanted else ()
        return _There(((row.tenant.slug if row.tenant else PLATFORM, row.slug), row) for row in found)

    def card_types(self) -> Mapping[str, CardType]:
        if self._card_types is None:
            self._card_types = {card.name: card for card in CardType.objects.filter(cluster=self.cluster)}
        return self._card_types

    def forget_card_types(self) -> None:
        self._card_types = None

    # -- what the audit log says -------------------------------------------------------------------------------------

    def tell(self, key: str, row: models.Model, pk: int | None = None, verb: str = "") -> None:
        kind = kind_of(key).replace("-", "_")
        before, after = self.before.get(key), self.after.get(key)
        act = verb or ("create" if before is None else "delete" if after is None else "update")
        parts = parts_of(key)
        label = " → ".join(parts) if kind == "grant" else "/".join(parts)
        self._told[key] = Fact(
            action=f"{kind}.{act}",
            object_type=kind,
            object_id=row.pk if pk is None else pk,
            object_label=label,
            tenant_ids=self._tenant_ids(key),
            before=before,
            after=after,
        )

    def _tenant_ids(self, key: str) -> list[int]:
        """Whose business an object is; a tide plan is that of the tenants of its queues."""
        sides = [documents for documents in (self.before, self.after) if key in documents]
        slugs = {tenant_of(key, documents) for documents in sides}
        if kind_of(key) == "tide-plan":
            slugs = {
                tenant_of(key_of("queue", queue), documents)
                for documents in sides
                for layer in documents[key]["layers"]
                for queue in layer["quota"]
            }
        found = [self._tenant_id(slug) for slug in slugs if slug]
        return [pk for pk in found if pk is not None]

    def _tenant_id(self, slug: str) -> int | None:
        if slug in self.reading.tenant_ids:
            return self.reading.tenant_ids[slug]
        made = self.tenant(slug)
        return None if made is None else made.pk

    def facts(self) -> list[Fact]:
        return [self._told[key] for key in self.keys if key in self._told]


def counted(rows: Sequence[Any], fields: Sequence[str]) -> None:
    now = timezone.now()
    written = [*fields, "version", "updated_at"]
    for row in rows:
        row.version += 1
        row.updated_at = now
    if len(rows) > _FEW:
        type(rows[0])._base_manager.bulk_update(rows, written, batch_size=500)
        return
    for row in rows:
        row.save(update_fields=written)
