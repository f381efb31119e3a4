"""The same tree gives the same bytes: sections by kind, names and fields in order, ambiguous texts in quotes."""

import hashlib
import json
import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

import yaml
from django.utils.translation import gettext as _

from tidesched_web.changes.documents import REPLACE, Fault, Faults, canonical
from tidesched_web.changes.tree_document import KINDS, Document, Documents, in_order, kind_of, parts_of, pointer
from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import Hints, Shown, cut
from tidesched_web.common.sentences import listed
from tidesched_web.engine.yaml_shape import UNREADABLE, check_shape

FORMAT: Final = 1
SECTIONS: Final[Mapping[str, str]] = {
    "rules": "rules",
    "card-type": "card_types",
    "tenant": "tenants",
    "project": "projects",
    "business-line": "business_lines",
    "priority-class": "priority_classes",
    "queue": "queues",
    "grant": "grants",
    "tide-plan": "tide_plans",
}
_HEAD: Final = (
    "The quota tree of one cluster: the intent that TideSched carries to it.",
    "`manage.py tree diff FILE` shows what it would change, `manage.py tree apply FILE --reason …` makes it so.",
    "What the file does not name is deleted by `apply`; with `--keep` it stays.",
)
_COMMENTS: Final[Mapping[str, str]] = {
    "rules": "How much of the hardware may be promised, and whether a second person has to agree to every change.",
    "card-type": "Declared ahead of the nodes that carry them; discovered ones are no intent.",
    "tenant": "quota: per service type; no card_quota = no limit, once there is one an absent card is 0.",
    "project": "tenant/project",
    "business-line": "tenant/line; - stands for the platform's own.",
    "priority-class": "Another value of a live class needs `replace: true` beside it.",
    "queue": "card_quota: cards by type, an absent one is 0; without cpu_milli or memory_bytes there is no limit.",
    "grant": "namespace/queue: who may use what. Without any, everybody may use every queue.",
    "tide-plan": "Layers over the base by the clock; set makes a figure, add changes it.",
}
# A text of these needs no quotes, unless a YAML reader would make a number, a date or a word of it.
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./|*-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"})
MOST_BYTES: Final = 32 * 2**20
# A tree of 10,000 queues with their grants and cards is a fraction of these.
MOST_OBJECTS: Final = 50_000
MOST_VALUES: Final = 1_500_000
# Values that aliases repeat cost as much as written ones; what a body costs is judged by its bytes.
MOST_REPEATED: Final = 5_000


def dumps(documents: Mapping[str, Document], *, cluster: str) -> str:
    """The file of a tree. Pure: nothing of the time or the machine is in it."""
    lines = [*(f"# {line}" for line in _HEAD), f"format: {FORMAT}", f"cluster: {_scalar(cluster)}"]
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for key in documents:
        by_kind[kind_of(key)].append(key)
    for kind in KINDS:
        keys = sorted(by_kind[kind])
        if not keys:
            continue
        lines += ["", f"# {_COMMENTS[kind]}", f"{SECTIONS[kind]}:"]
        for key in keys:
            lines += _entry(key.partition("/")[2], documents[key], 1)
    return "\n".join(lines) + "\n"


def _entry(name: str, value: Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(value, Mapping) and value:
        yield f"{pad}{_scalar(name)}:"
        for field in sorted(value):
            yield from _entry(field, value[field], depth + 1)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        yield f"{pad}{_scalar(name)}:"
        for item in value:
            yield from _item(item, depth + 1)
    else:
        yield f"{pad}{_scalar(name)}: {_flow(value)}"


def _item(item: Mapping[str, Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    rows = [row for field in sorted(item) for row in _entry(field, item[field], depth + 1)]
    for number, row in enumerate(rows):
        yield f"{pad}- {row[len(pad) + 2 :]}" if number == 0 else row
    if not rows:
        yield f"{pad}- {{}}"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(name)}: {_flow(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        if _BARE.fullmatch(value) and value.lower() not in _WORDS:
            return value
        # JSON's text is YAML's double-quoted text, but for what only YAML takes for the end of a line.
        quoted = json.dumps(value, ensure_ascii=False)
        return re.sub("[\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]", lambda m: f"\\u{ord(m[0]):04x}", quoted)
    raise TypeError(f"{type(value).__name__} has no place in a tree")


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """Reads no dates and no sexagesimal numbers, and refuses a name that is there twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}


for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-+0123456789"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), list(_first))


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    names = set[str]()  # 1 and "1" are one name
    for key_node, value_node in node.value:
        key = _value(loader, key_node)
        if not isinstance(key, Hashable) or str(key) in names:
            line = key_node.start_mark.line + 1
            raise _refused(_("Line %(line)d: %(name)r is there twice.") % {"line": line, "name": Shown(key)})
        names.add(str(key))
        found[key] = _value(loader, value_node)
    return found


def _value(loader: Any, node: yaml.Node) -> Any:
    if type(node) is yaml.ScalarNode:
        if node.tag == "tag:yaml.org,2002:str":
            return node.value
        if node.tag == "tag:yaml.org,2002:int" and node.value.isdecimal() and node.value[0] != "0":
            return int(node.value)
    return loader.construct_object(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _refused(detail: str, at: str = "", code: str = "invalid") -> DomainError:
    return DomainError.for_field(at, detail, code=code)


def loads(text: str) -> Documents:
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise _refused(
            _("The file is larger than %(most)d MiB.") % {"most": MOST_BYTES // 2**20}, code="body_too_large"
        )
    try:
        check_shape(
            text, twice=False, most=MOST_VALUES, repeats=MOST_REPEATED
        )  # keys: the loader, in the language of the reader
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = _("Line %(line)d: %(problem)s.")
        raise _refused(
            said % {"line": mark.line + 1 if mark else 1, "problem": error.problem or error.context}
        ) from None
    except (yaml.YAMLError, *UNREADABLE) as error:
        raise _refused(_("This is no YAML: %(problem)s.") % {"problem": error}) from None
    return documents_of(content)


def documents_of(content: object) -> Documents:
    if not isinstance(content, dict):
        raise _refused(_("The file has to be a map with sections such as queues."))
    version = content.get("format")
    if version is None:
        raise _refused(
            _("The file names no format: write format: %(known)d at its top.") % {"known": FORMAT}, "/format"
        )
    if isinstance(version, bool) or version != FORMAT:
        said = _("The file is of format %(found)r; this is format %(known)d.")
        raise _refused(said % {"found": Shown(version), "known": FORMAT}, "/format")
    if not isinstance(content.get("cluster", ""), str):
        raise _refused(_("The name of the cluster has to be a text."), "/cluster")
    kinds = {section: kind for kind, section in SECTIONS.items()}
    count = sum(len(entries) for entries in content.values() if isinstance(entries, dict))
    if count > MOST_OBJECTS:
        said = _("A file may hold at most %(most)d objects; this one has %(count)d.")
        raise _refused(said % {"most": MOST_OBJECTS, "count": count}, code="body_too_large")
    documents: Documents = {}
    faults, hints = Faults(), Hints()
    for section, entries in content.items():
        if section in ("format", "cluster"):
            continue
        if section not in kinds:
            known = [*kinds, "format", "cluster"]
            raise _refused(_unknown(str(section), known, hints), f"/{cut(str(section))}", "unknown_field")
        if entries is not None and not isinstance(entries, dict):
            raise _refused(_("%(section)s has to be a map.") % {"section": section}, f"/{section}")
        for name, entry in (entries or {}).items():
            key, document, found = _document(kinds[section], str(name), entry, hints)
            documents[key] = document
            faults.add(found)
    if faults.kept:
        first = faults.kept[0]
        errors = [{**fault.as_json(), "pointer": place_of(fault.object) + fault.field} for fault in faults.kept]
        extra = {"errors": errors, **({"more_errors": faults.more} if faults.more else {})}
        raise DomainError("invalid", f"{first.object}: {first.detail}", extra)
    return {key: documents[key] for key in sorted(documents)}


def _document(kind: str, name: str, entry: Any, hints: Hints) -> tuple[str, Document, list[Fault]]:
    key = f"{kind}/{name}"
    try:
        parts_of(key)
    except ValueError as error:
        raise _refused(str(error), f"/{SECTIONS[kind]}/{cut(name)}") from None
    if entry is not None and not isinstance(entry, dict):
        raise _refused(_("%(name)s has to be a map.") % {"name": key[:300]}, place_of(key))
    document = {str(field): value for field, value in (entry or {}).items() if value is not None}
    replace = document.pop(REPLACE, None) if kind == "priority-class" else None
    found, faults = canonical(key, document, hints)
    if not isinstance(replace, bool | None):
        faults = [*faults, Fault(key, pointer(REPLACE), "invalid", _("This has to be true or false."))]
    return key, found | ({REPLACE: True} if replace else {}), faults


def place_of(key: str) -> str:
    kind, _slash, name = key.partition("/")
    return pointer(SECTIONS[kind], name)


def content_of(documents: Mapping[str, Document], *, cluster: str) -> dict[str, Any]:
    content: dict[str, Any] = {"format": FORMAT, "cluster": cluster}
    for key in in_order(documents):
        kind, _slash, name = key.partition("/")
        content.setdefault(SECTIONS[kind], {})[name] = documents[key]
    return content


def version_of(documents: Mapping[str, Document]) -> int:
    """A number that is another one for another tree; of 17 digits at most, as an ETag of the API may have 18."""
    told = json.dumps(documents, sort_keys=True, separators=(",", ":")).encode()
    return int.from_bytes(hashlib.sha256(told).digest()[:7], "big")


def _unknown(name: str, known: list[str], hints: Hints) -> str:
    near = hints.near(name, known)
    said = _("There is no section %(name)r.") % {"name": Shown(name)}
    hint = _("Did you mean %(near)r?") % {"near": near} if near else _("Known: %(k)s.") % {"k": listed(known)}
    return said + " " + hint


def sections(documents: Mapping[str, Document]) -> dict[str, int]:
    counts = dict.fromkeys(KINDS, 0)
    for key in in_order(documents):
        counts[kind_of(key)] += 1
    return counts
