"""ResourceQuotas: what the pods of a namespace may ask for together."""

import msgspec


class ResourceQuota(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One ResourceQuota, immutable; by name: ``cpu`` (milli-cores), ``memory`` (MiB), ``pods``, other resources.

    Attributes:
        hard: ``spec.hard`` of requests; limits and what is not asked for by pods are left out.
        used: ``status.used`` of the same names; None = the object has no status.
        scopes: ``spec.scopes`` and the scopes of ``spec.scopeSelector`` that only say whether a pod is in.
        priority_classes: pods of one of these classes only; None = of any.
        other_classes: pods of these classes are not counted."""

    namespace: str
    name: str
    hard: dict[str, int] = {}
    used: dict[str, int] | None = None
    scopes: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] | None = None
    other_classes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
