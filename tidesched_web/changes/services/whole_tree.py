from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from tidesched_web.changes.authority import require_writer
from tidesched_web.changes.card_aliases import canonical_cards
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import read_tree
from tidesched_web.changes.services.applying import carry_out
from tidesched_web.changes.services.planning import check
from tidesched_web.changes.tree_document import Documents
from tidesched_web.changes.tree_file import version_of
from tidesched_web.changes.tree_import import edits_to
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import card_aliases
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_tree
from tidesched_web.common.permissions import Access


def check_tree(
    *, cluster: Cluster, wanted: Documents, keep: bool, access: Access, version: int | None = None
) -> dict[str, Any]:
    require_writer(access)
    before = _seen(cluster, access, version)
    edits = edits_to(before, canonical_cards(wanted, card_aliases(cluster)), keep=keep)
    return check(cluster=cluster, edits=edits, access=access)


def set_tree(
    *, cluster: Cluster, wanted: Documents, keep: bool, access: Access, reason: str, version: int | None = None
) -> QuotaChange:
    """No other write comes between the comparison of ``version`` and the change. ``keep``: what is not named stays."""
    require_writer(access)
    with transaction.atomic():
        lock_tree(cluster.pk)
        before = _seen(cluster, access, version)
        edits = edits_to(before, canonical_cards(wanted, card_aliases(cluster)), keep=keep)
        return carry_out(cluster=cluster, edits=edits, access=access, reason=reason, source="import")


def _seen(cluster: Cluster, access: Access, version: int | None) -> Documents:
    documents = read_tree(cluster, access)
    now = version_of(documents)
    if version is not None and version != now:
        text = _("%(object)s was changed since you looked at it.") % {"object": f"clusters/{cluster.slug}/tree"}
        raise DomainError("stale", text, {"etag": f'"{now}"'})
    return documents
