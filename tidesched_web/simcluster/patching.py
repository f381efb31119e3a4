from typing import Any

import orjson
import yaml

from tidesched_web.simcluster.errors import bad_request, unsupported_media_type

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
# Lists that a strategic merge patch merges entry by entry, and the field that tells the entries apart.
_MERGE_KEYS = {"conditions": "type"}


def read_object(body: bytes, content_type: str) -> dict[str, Any]:
    if not body:
        return {}
    try:
        obj = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "yaml" not in content_type:
            raise bad_request(f"the body of the request is not JSON: {error}") from None
        obj = _read_yaml(body)
    if not isinstance(obj, dict):
        raise bad_request("the body of the request is not an object")
    for field in ("metadata", "spec", "status"):
        if not isinstance(obj.get(field, {}), dict | None):
            raise bad_request(f"{field} is not an object")
    return obj


def _read_yaml(body: bytes) -> Any:
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise bad_request(f"the body of the request is not YAML: {error}") from None


def patch_type(content_type: str, *, custom: bool) -> str:
    media_type = content_type.split(";", maxsplit=1)[0].strip()
    if media_type not in (MERGE_PATCH, APPLY_PATCH, STRATEGIC_PATCH) or (custom and media_type == STRATEGIC_PATCH):
        raise unsupported_media_type(media_type)
    return media_type


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396: maps are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_patch(target: Any, patch: Any) -> Any:
    """As :func:`merge_patch`, but a list of conditions keeps those that the patch does not name."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif key in _MERGE_KEYS and isinstance(value, list):
            result[key] = _merged(result.get(key) or [], value, _MERGE_KEYS[key])
        else:
            result[key] = strategic_patch(result.get(key), value)
    return result


def _merged(there: list[Any], patch: list[Any], name: str) -> list[Any]:
    entries = {entry.get(name): entry for entry in there}
    for entry in patch:
        entries[entry.get(name)] = strategic_patch(entries.get(entry.get(name)), entry)
    return list(entries.values())
