"""The objects of a file, and what of a workload the rules look at."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.text import as_text, load_documents

# Kinds with a pod template; what the founding policy takes them for where nothing else is said.
_PLAIN = {"Deployment": "inference", "ReplicaSet": "inference", "StatefulSet": "", "DaemonSet": "", "Job": "training"}
VOLCANO_JOBS = "batch.volcano.sh/"


class Template(msgspec.Struct, frozen=True):
    """A pod as it would be made: where it is, its annotations, labels and containers. ``path``: of the template below
    the object, empty for a Pod. ``replicas``: how many of it. ``name``: of the role."""

    path: str
    name: str
    replicas: int
    annotations: dict[str, str]
    labels: dict[str, str]
    spec: Mapping[str, Any]

    def at(self, inner: str) -> str:
        """A path below the template."""
        return f"{self.path}.{inner}" if self.path else inner

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(path, container), init containers first."""
        for field in ("initContainers", "containers"):
            for index, container in enumerate(sequence(self.spec.get(field))):
                if isinstance(container, Mapping):
                    yield self.at(f"spec.{field}[{index}]"), container

    def devices(self) -> dict[str, str]:
        """Extended resources in its limits or requests: name -> path of the container that asks first."""
        found: dict[str, str] = {}
        for path, container in self.containers():
            resources = mapping(container.get("resources"))
            for part in ("limits", "requests"):
                for name, value in mapping(resources.get(part)).items():
                    if "/" in str(name) and value not in (None, 0, "0"):
                        found.setdefault(str(name), f"{path}.resources.{part}")
        return found


class Workload(msgspec.Struct, frozen=True):
    """One object that makes pods. ``service_type``: ``inference``, ``training`` or empty, by annotation and kind.
    ``annotations``: of the object itself. ``spec``: its spec."""

    name: str
    kind: str
    is_volcano_job: bool
    service_type: str
    annotations: dict[str, str]
    spec: Mapping[str, Any]
    templates: tuple[Template, ...]


def objects(text: str | bytes, file: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, object) of a file: one object, a List, or several YAML documents. Raises BadInput: ``empty_workload`` or
    a malformed text."""
    documents = load_documents(as_text(text, file), file)
    if not documents:
        raise BadInput("empty_workload", "the file holds no object", file=file, hint="give a Kubernetes object or List")
    for number, document in enumerate(documents):
        prefix = f"documents[{number}]" if len(documents) > 1 else ""
        if not isinstance(document, Mapping):
            raise BadInput("malformed_object", "a Kubernetes object is expected", file=file, path=prefix or None)
        if "items" in document:
            for index, item in enumerate(sequence(document["items"])):
                if isinstance(item, Mapping):
                    yield f"{prefix}.items[{index}]".lstrip("."), item
        else:
            yield prefix or "object", document


def workload_of(document: Mapping[str, Any], name: str) -> Workload | None:
    """What the rules look at, or None for a kind that makes no pods."""
    kind, spec = str(document.get("kind") or ""), mapping(document.get("spec"))
    volcano = kind == "Job" and str(document.get("apiVersion") or "").startswith(VOLCANO_JOBS)
    if kind == "Pod":
        templates: tuple[Template, ...] = (_template(document, "", "", 1),)
    elif volcano:
        templates = tuple(
            _template(
                mapping(task.get("template")), f"spec.tasks[{i}].template", str(task.get("name") or f"default{i}"),
                integer(task.get("replicas"), 1),
            )
            for i, task in enumerate(sequence(spec.get("tasks")))
            if isinstance(task, Mapping)
        )  # fmt: skip
    elif kind in _PLAIN:
        count = spec.get("parallelism") if kind == "Job" else spec.get("replicas")
        templates = (_template(mapping(spec.get("template")), "spec.template", "", integer(count, 1)),)
    else:
        return None
    notes = texts(mapping(document.get("metadata")).get("annotations"))
    said = notes.get(keys.SERVICE_TYPE) or next(
        (t.annotations[keys.SERVICE_TYPE] for t in templates if keys.SERVICE_TYPE in t.annotations), ""
    )
    return Workload(name, kind, volcano, said or _PLAIN.get(kind, ""), notes, spec, templates)


def _template(template: Mapping[str, Any], path: str, name: str, replicas: int) -> Template:
    meta = mapping(template.get("metadata"))
    notes, labels = texts(meta.get("annotations")), texts(meta.get("labels"))
    return Template(path, name, replicas, notes, labels, mapping(template.get("spec")))


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def integer(value: Any, default: int) -> int:
    """The value where it is a whole number, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def texts(value: Any) -> dict[str, str]:
    shown = {True: "true", False: "false"}
    return {str(k): shown[v] if isinstance(v, bool) else str(v) for k, v in mapping(value).items() if v is not None}
