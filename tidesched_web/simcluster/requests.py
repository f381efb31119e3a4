from dataclasses import dataclass, field

from starlette.requests import Request

from tidesched_web.simcluster.errors import bad_request, path_not_found
from tidesched_web.simcluster.resources import BY_PATH, NAMESPACES, ResourceType


@dataclass(frozen=True)
class Target:
    kind: ResourceType
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Caller:
    """Who writes, in the words of the write log."""

    manager: str
    session: str
    epoch: str


@dataclass(frozen=True)
class Write:
    target: Target
    verb: str
    caller: Caller
    body: bytes
    content_type: str
    dry_run: bool
    force: bool
    query: dict[str, str] = field(default_factory=dict)


def parse_target(path: str) -> Target:
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise path_not_found()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in NAMESPACES.subresources:
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise path_not_found()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if (kind.namespaced and name and not namespace) or (subresource and subresource not in kind.subresources):
        raise path_not_found()
    return Target(kind, namespace, name, subresource)


def caller_of(request: Request) -> Caller:
    """The field manager (or the client's name), and the session and epoch that it says it acts for."""
    agent = request.headers.get("user-agent", "unknown").split("/")[0].split(" ")[0]
    return Caller(
        manager=request.query_params.get("fieldManager") or agent,
        session=request.headers.get("x-tidesched-session", ""),
        epoch=request.headers.get("x-tidesched-epoch", ""),
    )


def is_dry_run(value: str | None) -> bool:
    if value in (None, ""):
        return False
    if value != "All":
        raise bad_request(f"Invalid value: {value!r}: dryRun: supported values: All")
    return True


def whole_number(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name)
    if not value:
        return default
    if not value.isdigit():
        raise bad_request(f"{name}: {value!r} is not a whole number")
    return int(value)
