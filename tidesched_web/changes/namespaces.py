"""Whose a namespace is: that of the tenants whose queues it may use. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tidesched_web.changes.selectors import tenant_of
from tidesched_web.changes.tree_document import Document, kind_of, parts_of


def tenants_of_namespaces(documents: Mapping[str, Document]) -> Mapping[str, set[str]]:
    """The tenants of each namespace; queues of the platform belong to none of them."""
    found: dict[str, set[str]] = defaultdict(set)
    for key in documents:
        if kind_of(key) == "grant" and (tenant := tenant_of(key, documents)) is not None:
            found[parts_of(key)[0]].add(tenant)
    return found


def granted_elsewhere(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[tuple[str, set[str]]]:
    """New grants whose namespace is a tenant's already and not the one's of their queue, with those tenants."""
    new = [key for key in sorted(edits) if kind_of(key) == "grant" and key in after and key not in before]
    known = tenants_of_namespaces(before) if new else {}
    for key in new:
        tenants = known.get(parts_of(key)[0], set())
        if tenants and tenant_of(key, after) not in tenants:
            yield key, tenants
