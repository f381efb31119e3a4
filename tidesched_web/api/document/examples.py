from collections.abc import Mapping
from typing import Any

_JSON = "application/json"
_SCHEMAS = "#/components/schemas/"
_CARD = "NVIDIA-H200"
# What the examples were looked at in, the tree that their plan stands on, and the drift that they decide about.
VERSION, BASE_VERSION, DRIFT_IDS = 1, 12, (301, 302)
_WHY = "Launch of the chat assistant"
_EDITS = {"queue/acme-online": {"card_quota": {_CARD: 8}}}
_MORE = {"acme-train": {_CARD: {"add": 1}}}
_LAYER = {"name": "night", "days": ["mon", "tue"], "start": "22:00", "end": "07:00", "quota": _MORE}
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: north, cluster: {server: "https://10.20.0.1:6443"}}]
users: [{name: tidesched, user: {token: eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl}}]
contexts: [{name: north, context: {cluster: north, user: tidesched}}]
current-context: north
"""
_CONNECTION = {"kubeconfig": _KUBECONFIG, "context": "north", "accept": True, "reason": "A new hall"}
_POLICY = 'actions: "enqueue, allocate, reclaim"\ntiers:\n- plugins:\n  - name: gang\n  - name: capacity-card\n'
_QUEUE = {"service_type": "inference", "tenant": "acme", "project": "chat", "card_quota": {_CARD: 2}}

# schema of a request → its body
REQUESTS: dict[str, dict[str, Any]] = {
    "ApplyInput": {"reason": _WHY, "base_version": BASE_VERSION},
    "BusinessLineInput": {"tenant": "acme", "slug": "evaluation", "name": "Evaluation"},
    "CardTypeInput": {"cluster": "east", "name": "NVIDIA-B200", "resource": "nvidia.com/gpu", "reason": "Ordered"},
    "CardTypePatch": {"aliases": ["H200"], "reason": "As the teams call it"},
    "ChangeInput": {"cluster": "east", "edits": _EDITS, "reason": _WHY},
    "ChangePatch": {"edits": _EDITS, "reason": _WHY},
    "ClusterInput": {"name": "North", "slug": "north", "mode": "observe", **_CONNECTION},
    "ClusterPatch": {"mode": "quota", "evict_gangs_per_minute": 20, "reason": "Ready for quota"},
    "ConnectionInput": _CONNECTION,
    "DeleteInput": {"reason": "Not used any more"},
    "DriftActs": {"ids": [*DRIFT_IDS], "act": "repush", "reason": "Edited by mistake"},
    "GrantInput": {"cluster": "east", "namespace": "acme-batch", "queue": "acme-online", "reason": _WHY},
    "MemberInput": {"tenant": "acme", "user": "mei", "role": "member"},
    "MemberPatch": {"role": "admin"},
    "NamePatch": {"name": "Research and evaluation"},
    "PolicyInput": {"text": _POLICY, "reason": "Cards of the night"},
    "PriorityClassInput": {"cluster": "east", "name": "inference-high", "value": 80000, "reason": _WHY},
    "PriorityClassPatch": {"description": "Chat and search", "reason": _WHY},
    "ProjectInput": {"tenant": "acme", "slug": "search", "name": "Search"},
    "ProjectPatch": {"name": "Chat"},
    "QueueInput": {"cluster": "east", "name": "acme-search", **_QUEUE, "reason": _WHY},
    "QueuePatch": {"card_quota": {_CARD: 8, "NVIDIA-A100": None}, "reason": _WHY},
    "ReasonInput": {"reason": "Work on the network"},
    "RemoveInput": {"name": "Old hall", "reason": "The hall is closed"},
    "RollBackInput": {"reason": "The launch is over", "apply": False},
    "SayWhy": {"reason": _WHY},
    "TenantInput": {"slug": "lumen", "name": "Lumen"},
    "TenantPatch": {"name": "Acme", "quota": {"east": {"inference": {"card_quota": {_CARD: 7}}}}, "reason": _WHY},
    "TestInput": {"mode": "quota"},
    "TidePlanInput": {"cluster": "east", "name": "nights", "layers": [_LAYER], "reason": _WHY},
    "TidePlanPatch": {"enabled": False, "reason": "Holidays"},
    "TokenInput": {"name": "platform", "scopes": ["quota:read", "reclaim:read"], "expires": "90d", "tenant": "acme"},
    "TreeInput": {"tree": {"format": 1, "queues": {"acme-search": _QUEUE}}, "keep": True, "reason": _WHY},
    "UserInput": {"username": "li", "email": "li@acme.example", "memberships": [{"tenant": "acme", "role": "admin"}]},
    "UserPatch": {"first_name": "Mei", "last_name": "Chen"},
}  # fmt: skip

# member of an answer → its value, wherever a schema has a member of this name and kind
VALUES: dict[str, Any] = {
    "actor": "user:mei", "api_url": "https://east.example:6443", "base_version": BASE_VERSION, "card": _CARD,
    "card_quota": {_CARD: 8}, "cards": {_CARD: 4.0}, "chain": "platform", "created_by": "user:mei",
    "display": "acme-online", "edits": _EDITS, "effective_quota": {_CARD: 8}, "email": "mei@acme.example",
    "failure": None, "gang": "acme/chat-7b", "impact": None, "instead": None, "layers": [_LAYER],
    "memory_bytes": 274877906944, "name": "acme-online", "namespace": "acme", "next": None, "node": "gpu-node-07",
    "numbers": {}, "object_type": "queue", "previous": None, "queue": "acme-online", "reason": _WHY,
    "resource": "nvidia.com/gpu", "result": None, "server": None, "slug": "acme", "username": "mei", "version": VERSION,
}  # fmt: skip
_BY_FORMAT = {"date-time": "2026-03-01T12:00:00Z", "date": "2026-03-01", "uri": "https://tidesched.example/api/v1/"}
_BY_TYPE: dict[str, Any] = {"string": "", "integer": 1, "number": 1.0, "boolean": False, "null": None}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_SEVERAL = ("oneOf", "allOf", "anyOf")


def add_to(document: dict[str, Any]) -> None:
    maker = _Maker(document["components"]["schemas"])
    found: dict[str, Any] = {}
    for path in document["paths"].values():
        for operation in path.values():
            answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            bodies = [body.get("content", {}).get(_JSON) for body in (operation.get("requestBody", {}), *answers)]
            media: dict[str, Any] = next((one for one in bodies if one is not None), {"schema": {}})
            name = media["schema"].get("$ref", "").removeprefix(_SCHEMAS)
            if name:
                found.setdefault(name, {"value": maker.component(name)})
                media["examples"] = {"example": {"$ref": f"#/components/examples/{name}"}}
            else:
                media["example"] = maker.example_of(media["schema"])
    document["components"]["examples"] = dict(sorted(found.items()))


class _Maker:
    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas

    def component(self, name: str) -> Any:
        return REQUESTS[name] if name in REQUESTS else self.example_of(self.schemas[name])

    def example_of(self, schema: Mapping[str, Any], member: str = "") -> Any:
        if member in VALUES and self._may_be(VALUES[member], schema):
            return VALUES[member]
        if "example" in schema:
            return schema["example"]
        if "$ref" in schema:
            return self.component(schema["$ref"].removeprefix(_SCHEMAS))
        for several in _SEVERAL:
            if several in schema:
                return self.example_of(schema[several][0])
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "array":
            return [self.example_of(schema["items"])]
        if kind == "object":
            return {key: self.example_of(part, key) for key, part in schema.get("properties", {}).items()}
        return _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE[kind])

    def _may_be(self, value: Any, schema: Mapping[str, Any]) -> bool:
        if "$ref" in schema:
            return self._may_be(value, self.schemas[schema["$ref"].removeprefix(_SCHEMAS)])
        for several in _SEVERAL:
            if several in schema:
                return any(self._may_be(value, part) for part in schema[several])
        if "enum" in schema:
            return value in schema["enum"]
        if isinstance(value, list) and value and "items" in schema:
            return self._may_be(value[0], schema["items"])
        kinds = schema.get("type", ())
        return _TYPES.get(type(value), "null") in (kinds if isinstance(kinds, list) else [kinds])
