"""At a hundred thousand pods every annotation that is not read would be kept so often."""

from typing import Any

Json = dict[str, Any]

# Bookkeeping of clients, networks and controllers. All else stays: an extender is shown the annotations of a pod.
_BOOKKEEPERS = ("kubernetes.io", "cni.cncf.io", "projectcalico.org", "helm.sh", "cattle.io")
_LONGEST = 4096


def needed(obj: Json) -> Json:
    """The object without annotations that say nothing about scheduling; the same one where it has none of these."""
    metadata = obj["metadata"]
    notes = metadata.get("annotations")
    if not notes:
        return obj
    kept = {key: value for key, value in notes.items() if not _is_bookkeeping(key, value)}
    if len(kept) == len(notes):
        return obj
    return {**obj, "metadata": {**metadata, "annotations": kept}}


def _is_bookkeeping(key: str, value: object) -> bool:
    prefix, slash, _ = key.partition("/")
    return bool(slash) and (prefix.endswith(_BOOKKEEPERS) or (isinstance(value, str) and len(value) > _LONGEST))
