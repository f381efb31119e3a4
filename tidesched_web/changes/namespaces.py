from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tidesched_web.changes.selectors import tenant_of
from tidesched_web.changes.tree_document import Document, kind_of, parts_of

# The owner of the queues that no tenant has.
PLATFORM = ""
# Namespaces of Kubernetes itself: the platform's, whatever queues they may use.
_SYSTEM = "kube-"


def owners_of_namespaces(documents: Mapping[str, Document]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for key in documents:
        if kind_of(key) == "grant":
            found[parts_of(key)[0]].add(tenant_of(key, documents) or PLATFORM)
    return found


def granted_elsewhere(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[tuple[str, set[str]]]:
    new = [key for key in sorted(edits) if kind_of(key) == "grant" and key in after and key not in before]
    known = owners_of_namespaces(before) if new else {}
    for key in new:
        namespace = parts_of(key)[0]
        owners = known.get(namespace, {PLATFORM} if namespace.startswith(_SYSTEM) else set())
        if owners and (tenant_of(key, after) or PLATFORM) not in owners:
            yield key, owners
