"""Whether edits may give the names that people read: to tenants, projects and business lines. Pure functions.

A name that stands there already stays, whatever it is: it is looked at when it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidesched_web.changes.documents import Fault
from tidesched_web.changes.tree_document import Document, kind_of, parts_of
from tidesched_web.common.shown_names import NamesOfTenants, hidden_in

_NAMED: Final = ("tenant", "project", "business-line")


def misleading_names(
    before: Mapping[str, Document], after: Mapping[str, Document], edits: Mapping[str, Any]
) -> Iterator[Fault]:
    """New names with signs that are not seen, and names of tenants that look like another tenant's. O(documents)."""
    given = {
        key: after[key].get("name", "")
        for key in sorted(edits)
        if key in after and kind_of(key) in _NAMED and after[key].get("name") != before.get(key, {}).get("name")
    }
    tenants: NamesOfTenants | None = None
    for key, name in given.items():
        problem = hidden_in(name)
        if not problem and kind_of(key) == "tenant":
            tenants = tenants or NamesOfTenants(
                (parts_of(other)[0], document.get("name", ""))
                for other, document in after.items()
                if kind_of(other) == "tenant"
            )
            problem = tenants.problem(parts_of(key)[0], name)
        if problem:
            yield Fault(key, "/name", "misleading_name", problem)
