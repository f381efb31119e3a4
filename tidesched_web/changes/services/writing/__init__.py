"""Write documents of a tree into their rows, under the lock of the tree, and say what the audit log has to tell."""

from __future__ import annotations

from collections.abc import Iterable

from tidesched_web.audit.services import Fact
from tidesched_web.changes.selectors import TreeReading
from tidesched_web.changes.services.writing import catalogue, grants, owners, queues, quotas
from tidesched_web.changes.services.writing.rows import Rows
from tidesched_web.changes.tree_document import Documents, in_order
from tidesched_web.clusters.models import Cluster


def write_documents(*, cluster: Cluster, reading: TreeReading, after: Documents, keys: Iterable[str]) -> list[Fact]:
    """Bring the rows of ``keys`` from what was read to ``after``; the facts in the order of the keys.

    The caller holds the lock of the tree and has read it under that, has checked the documents, and appends the facts
    last of all.
    """
    before = reading.documents
    touched = in_order(key for key in keys if before.get(key) != after.get(key))
    rows = Rows(cluster=cluster, reading=reading, after=after, keys=touched)
    catalogue.write_rules(rows)
    catalogue.write_card_types(rows)
    owners.write(rows)
    catalogue.write_priority_classes(rows)
    queues.write(rows)
    quotas.write(rows)
    grants.write(rows)
    queues.delete(rows)
    owners.delete(rows)
    catalogue.delete_card_types(rows)
    catalogue.write_tide_plans(rows)
    return rows.facts()
