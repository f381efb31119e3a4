"""Each function raises inside a transaction: what it wrote until then is undone with the attempt."""

import copy
import secrets
from typing import Any

from tidesched_web.simcluster import admission, field_ownership
from tidesched_web.simcluster.errors import already_exists, bad_request, conflict, invalid, not_found
from tidesched_web.simcluster.patching import STRATEGIC_PATCH, merge_patch, strategic_patch
from tidesched_web.simcluster.requests import Target
from tidesched_web.simcluster.resources import NAMESPACES, ResourceType
from tidesched_web.simcluster.store import Object, Store

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def read(store: Store, target: Target) -> Object:
    obj = store.get(target.kind, target.namespace, target.name)
    if obj is None:
        raise not_found(target.kind, target.name)
    return obj


def create(store: Store, target: Target, body: Object, *, manager: str, now: str) -> Object:
    obj = prepare(store, target, body)
    field_ownership.record_update(obj, None, manager, now)
    return store.put(target.kind, obj, now=now)


def prepare(store: Store, target: Target, body: Object) -> Object:
    kind, namespace = target.kind, target.namespace
    if kind.namespaced and not namespace:
        raise bad_request("the namespace of the request is missing")
    obj = copy.deepcopy(body)
    metadata = obj["metadata"] = dict(obj.get("metadata") or {})
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + "".join(secrets.choice(_NAME_ALPHABET) for _ in range(5))
    name = metadata.get("name")
    if not name:
        raise invalid(kind, "", "metadata.name", "Required value: name or generateName is required")
    admission.check_identity(kind, namespace, name, obj)
    _require_namespace(store, kind, namespace)
    if store.get(kind, namespace, name) is not None:
        raise already_exists(kind, name)
    for server_side in (
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "deletionTimestamp",
    ):
        metadata.pop(server_side, None)
    if kind.namespaced:
        metadata["namespace"] = namespace
    admission.prepare_new(store, kind, obj)
    admission.validate(kind, obj, None)
    obj["apiVersion"], obj["kind"] = kind.group_version, kind.kind
    return obj


def update(store: Store, target: Target, body: Object, *, manager: str, now: str) -> Object:
    """PUT: the whole object; a resource version in it must be the latest."""
    old = read(store, target)
    admission.check_identity(target.kind, target.namespace, target.name, body)
    new = copy.deepcopy(body)
    new.setdefault("metadata", {})
    return _replace(store, target, old, new, manager=manager, now=now)


def patch(store: Store, target: Target, body: Object, *, media_type: str, manager: str, now: str) -> Object:
    """A merge patch of either kind; a uid or a resource version in it is a precondition."""
    old = read(store, target)
    new = (strategic_patch if media_type == STRATEGIC_PATCH else merge_patch)(old, body)
    admission.check_identity(target.kind, target.namespace, target.name, new)
    return _replace(store, target, old, new, manager=manager, now=now)


def apply(store: Store, target: Target, body: Object, *, manager: str, force: bool, now: str) -> tuple[Object, bool]:
    kind = target.kind
    if body.get("metadata", {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    for required in ("apiVersion", "kind"):
        if required not in body:
            raise bad_request(f"{required} must be set in an apply patch")
    admission.check_identity(kind, target.namespace, target.name, body)
    old = store.get(kind, target.namespace, target.name)
    if old is None:
        _require_namespace(store, kind, target.namespace)
    else:
        _check_preconditions(target, old, body.get("metadata", {}))
    applied = _without_status(body) if kind.has_status else body
    try:
        new = field_ownership.apply(old, applied, manager, now, force=force)
    except field_ownership.FieldConflict as error:
        raise conflict(kind, target.name, str(error), causes=error.causes) from None
    new["metadata"]["name"] = target.name
    if kind.namespaced:
        new["metadata"]["namespace"] = target.namespace
    if old is None:
        admission.prepare_new(store, kind, new)
    admission.validate(kind, new, old)
    return store.put(kind, new, now=now), old is None


def delete(store: Store, target: Target, options: Object) -> Object:
    old = read(store, target)
    check_delete_preconditions(target, old, options)
    store.remove(target.kind, target.namespace, target.name)
    return old


def check_delete_preconditions(target: Target, old: Object, options: Object) -> None:
    _check_preconditions(target, old, options.get("preconditions") or {})


def _replace(store: Store, target: Target, old: Object, new: Object, *, manager: str, now: str) -> Object:
    kind = target.kind
    _check_preconditions(target, old, new["metadata"])
    if target.subresource == "status":
        new = {**old, "status": new.get("status", {})}
    elif kind.has_status:
        new = _without_status(new)
        if "status" in old:
            new["status"] = old["status"]
    if new["metadata"] is not old["metadata"]:
        new["metadata"] = {**new["metadata"]}
        # The server's own fields cannot be written.
        for field in ("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"):
            new["metadata"].pop(field, None)
            if field in old["metadata"]:
                new["metadata"][field] = old["metadata"][field]
        new["metadata"]["name"] = target.name
        if kind.namespaced:
            new["metadata"]["namespace"] = target.namespace
    admission.validate(kind, new, old)
    if field_ownership.leaves(new) == field_ownership.leaves(old):
        return old
    new = {**new, "metadata": {**new["metadata"]}}
    field_ownership.record_update(new, old, manager, now, target.subresource)
    return store.put(kind, new, now=now)


def _check_preconditions(target: Target, old: Object, wanted: dict[str, Any]) -> None:
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(target.kind, target.name, why)
    if version and str(version) != old["metadata"]["resourceVersion"]:
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(target.kind, target.name, why)


def _require_namespace(store: Store, kind: ResourceType, namespace: str) -> None:
    if kind.namespaced and store.get(NAMESPACES, "", namespace) is None:
        raise not_found(NAMESPACES, namespace)


def _without_status(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "status"}
