"""kube-controller-manager's garbage collector: what belonged to an object goes when that has gone."""

from __future__ import annotations

from tests.kube.standins.picture import Picture, key_of
from tidesched_web.clusters.kubernetes.client import Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, POD, POD_GROUP, REPLICA_SET, Kind

_OWNERS = {kind.name: kind for kind in (JOB, DEPLOYMENT, REPLICA_SET)}


class Garbage:
    """For one kind of owned objects; owners of other kinds than :data:`_OWNERS` are taken to be there."""

    def __init__(self, client: KubernetesClient, picture: Picture, kind: Kind) -> None:
        self._client, self._picture, self._kind = client, picture, kind
        self.kind = kind.name

    def look(self, obj: Json) -> float | None:
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner["kind"] in _OWNERS and self._gone(owner, obj["metadata"]["namespace"]):
                options = {"preconditions": {"uid": obj["metadata"]["uid"]}}
                if not obj["metadata"].get("deletionTimestamp"):
                    self._client.send("DELETE", self._kind.path(*key_of(obj)), options)
        return None

    def _gone(self, owner: Json, namespace: str) -> bool:
        """The picture may be behind, so the server is asked."""
        seen = self._picture.get(owner["kind"], (namespace, owner["name"]))
        if seen is not None and seen["metadata"]["uid"] == owner["uid"]:
            return False
        found = self._client.send("GET", _OWNERS[owner["kind"]].path(namespace, owner["name"]))
        if found.body is None:
            return found.reason == "NotFound"
        return bool(found.body["metadata"]["uid"] != owner["uid"])


def garbage(client: KubernetesClient, picture: Picture) -> list[Garbage]:
    return [Garbage(client, picture, kind) for kind in (POD, POD_GROUP, REPLICA_SET)]
