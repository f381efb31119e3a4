from collections.abc import Mapping

from tidesched_web.changes.documents import REPLACE, RULES
from tidesched_web.changes.tree_document import Document, Edits, patch_between


def edits_to(before: Mapping[str, Document], wanted: Mapping[str, Document], *, keep: bool = False) -> Edits:
    plain = {key: {name: wanted[key][name] for name in wanted[key] if name != REPLACE} for key in wanted}
    edits: Edits = patch_between(before, plain)
    if RULES not in wanted:
        edits.pop(RULES, None)  # a file without them leaves them as they are
    if keep:
        edits = {key: patch for key, patch in edits.items() if patch is not None}
    for key, document in wanted.items():
        # Another value of a live class is an act that the file has to name.
        if document.get(REPLACE) and "value" in (edits.get(key) or {}):
            edits[key] = {**edits[key], REPLACE: True}
    return edits
