from collections.abc import Iterable

from django.db import connection

from tidesched_web.audit.services import Fact
from tidesched_web.changes.selectors import TreeReading
from tidesched_web.changes.services.writing import catalogue, grants, owners, queues, quotas
from tidesched_web.changes.services.writing.rows import Gone, Rows
from tidesched_web.changes.tree_document import Documents, in_order
from tidesched_web.clusters.models import Cluster

__all__ = ["Gone", "write_documents"]


def write_documents(*, cluster: Cluster, reading: TreeReading, after: Documents, keys: Iterable[str]) -> list[Fact]:
    """The caller holds the lock of the tree, has checked the documents under it, and appends the facts last."""
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
    # What breaks a reference is found here, while it can still be refused, and not by the COMMIT.
    connection.check_constraints()
    return rows.facts()
