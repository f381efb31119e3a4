"""What documents name is there: commands, variables, addresses, files, words of the source, labels of pages."""

import argparse
import ast
import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from functools import cache

import pytest
import yaml
from babel.messages.pofile import read_po
from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.urls import URLResolver, get_resolver

from scheduler_core.cli.arguments import build_parser
from scheduler_core.model.reason import ReasonCode
from tests.architecture import mentions, sources
from tests.architecture.mentions import Mention
from tests.proofs import PROOFS
from tidesched_web.api.v1.serializers.scheduling import ALERT_CODES
from tidesched_web.audit.findings import Kind as Damage
from tidesched_web.changes.tree_document import KINDS
from tidesched_web.simcluster.__main__ import _parser as simcluster_parser
from tidesched_web.simcluster.resources import RESOURCE_TYPES

# A name in a text, the kind of thing that it should be, and the names of that kind; () where nothing is near.
Wrong = tuple[str, str, Iterable[str]]

PIECE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
# snake_case, kebab-case, CamelCase and lowerCamel: what no sentence writes, so it is a name of the source.
NAME = re.compile(
    r"(?<![\w./<{~$-])(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+(?:-[a-z0-9]+)+|[A-Za-z]+[a-z0-9][A-Z]\w*)(?![\w./-])"
)
VARIABLE = re.compile(r"(?<![\w$-])[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9](?!\w)")
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
# Programs of others, whose options and files are theirs.
OTHERS = re.compile(r"\b(?:kubectl|helm|docker|pg_dump|pg_restore|openssl|pip|apt|git|curl|sha256sum)\b")
# A check of Schemathesis; names that the sources put together of parts; the gang and the token of an example.
ELSEWHERE = {"object_level_authorization", "no-preempt-voter", "tidesched-keys", "research/llama-7b", "tide_abc"}


@cache
def text_of_sources() -> str:
    """All files but the documents themselves and these tests."""
    own = sources.ROOT / "tests" / "architecture"
    files = [one for one in sources.committed() if one.suffix not in {".md", ".png"} and not one.is_relative_to(own)]
    return "\n".join(one.read_text(encoding="utf-8", errors="replace") for one in files)


@cache
def words() -> frozenset[str]:
    """The names in the sources; the parts of one with dashes too, as classes of a style sheet have them."""
    tables = {model._meta.db_table for model in apps.get_models()}
    return frozenset(PIECE.findall(text_of_sources())).union(
        tables, (path.stem for path in sources.committed()), ELSEWHERE
    )


@cache
def files() -> tuple[str, ...]:
    """The files under version control and their folders, each from the root on."""
    names = {path.relative_to(sources.ROOT) for path in sources.committed()}
    return tuple(sorted({str(one) for name in names for one in (name, *name.parents)} - {"."}))


@cache
def addresses() -> frozenset[str]:
    """Every address, with `<>` for what is put in; without the first slash."""

    def below(patterns: Iterable, before: str) -> Iterator[str]:
        for one in patterns:
            address = before + str(one.pattern)
            if isinstance(one, URLResolver):
                yield from below(one.url_patterns, address)
            else:
                yield re.sub(r"<[^>]*>", "<>", address)

    return frozenset({*below(get_resolver().url_patterns, ""), "healthz", "readyz"})


@cache
def operations() -> dict[str, set[str]]:
    """Address of the REST API → the methods of the document."""
    document = yaml.load((sources.ROOT / "openapi.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {
        re.sub(r"\{[^}]*\}", "<>", path).lstrip("/"): {method.upper() for method in methods}
        for path, methods in document["paths"].items()
    }


@cache
def targets() -> frozenset[str]:
    made = re.findall(r"^([a-z-]+):(?! *export)", (sources.ROOT / "Makefile").read_text(), re.MULTILINE)
    return frozenset([*made, *(f"proof-{name}" for name in PROOFS)])


@cache
def labels() -> frozenset[str]:
    """The English texts of pages, and the headings of documents."""
    with (sources.ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po").open("rb") as file:
        found = {message.id if isinstance(message.id, str) else message.id[0] for message in read_po(file)}
    return frozenset(found).union(*(read(path).headings for path in mentions.documents()))


@cache
def read(path):
    return mentions.read(str(path.relative_to(sources.ROOT)), path.read_text(encoding="utf-8"))


def make_targets(one: Mention) -> Iterator[Wrong]:
    for name in () if OTHERS.search(one.text) else re.findall(r"(?:^|[\s$])make ([a-z][a-z-]*[a-z])", one.text):
        if name not in targets():
            yield name, "target of make", targets()


def variables(one: Mention) -> Iterator[Wrong]:
    for name in VARIABLE.findall(one.text):
        if name not in words():
            yield name, "variable", (word for word in words() if word.isupper())


def options(one: Mention) -> Iterator[Wrong]:
    for name in () if OTHERS.search(one.text) else re.findall(r"(?<![\w-])--[a-z][a-z-]*", one.text):
        if not re.search(rf"{name}(?![\w-])", text_of_sources()):
            yield name, "option", re.findall(r"(?<![\w-])--[a-z][a-z-]+", text_of_sources())


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next((dict(one.choices) for one in parser._actions if isinstance(one, argparse._SubParsersAction)), {})


def commands(one: Mention) -> Iterator[Wrong]:
    """`manage.py` with its commands, their acts and options."""
    for name, rest in re.findall(r"manage\.py ([a-z_]+)([^|>`]*)", one.text):
        if name not in get_commands():
            yield name, "command of manage.py", get_commands()
            continue
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        acts = _subcommands(parser)
        act = next(iter(rest.split()), "")
        if acts and re.fullmatch(r"[a-z-]+", act) and act not in acts:
            yield f"{name} {act}", "act of that command", (f"{name} {known}" for known in acts)
        known = acts.get(act, parser)._option_string_actions
        for option in re.findall(r"(?<=\s)--[a-z-]+", rest):
            if option not in known:
                yield option, f"option of `manage.py {name}`", known


def modules(one: Mention) -> Iterator[Wrong]:
    for name in re.findall(r"python3? -m ((?:scheduler_core|tidesched_web|tests|bench)[\w.]*)", one.text):
        path = sources.ROOT / name.replace(".", "/")
        if not path.with_suffix(".py").is_file() and not (path / "__main__.py").is_file():
            yield name, "module that runs", (file.removesuffix(".py").replace("/", ".") for file in files())


def _tokens(text: str) -> Iterator[str]:
    """What reads like a way, without its parameters: `{a,b}/` is two of them."""
    for token in re.split(r"[\s|,\"'()]+(?![^{]*\})", re.sub(r"\{\s*\"[^}]*\}+|(?<![\w/])[A-Z_]+=\S+", "", text)):
        way = re.split(r"[?#]", token)[0].rstrip(".:;")
        if "/" not in way or re.match(r"[\d$<~-]|.*:/|//|DATA_DIR|\.data|\.venv|test-results|[^<]*>", way):
            continue
        several = re.search(r"\{([^}]*,[^}]*)\}", way)
        yield from [way.replace(several[0], part) for part in several[1].split(",")] if several else [way]


def _normal(way: str) -> str:
    return re.sub(r"(?<=/)(?:\d+|N)(?=/|$)|<[^>]*>|\{[^}]*\}", "<>", way).lstrip("/")


def _is_file(way: str) -> bool:
    pattern = re.sub(r"<[^>]*>|…|\bN\b", "*", way.strip("/"))
    return any(fnmatch(f"/{file}", f"*/{pattern}") or fnmatch(f"/{file}", f"*/{pattern}.py") for file in files())


def ways(one: Mention) -> Iterator[Wrong]:
    """Addresses of pages and of the REST API, and files."""
    if OTHERS.search(one.text) and not one.command:
        return
    method = one.text.split()[0] if one.text.split() else ""
    for way in _tokens(one.text):
        first = way.lstrip("/").split("/")[0]
        if "." in first.lstrip(".") and not (sources.ROOT / first).exists():
            continue  # the name of a host, or a group of Kubernetes
        plain = _normal(way.removeprefix("…"))
        absolute = way.startswith("/")
        api = next((known for known in (plain, f"api/v1/{plain}") if known in operations()), "")
        if api and method in METHODS and method not in operations()[api] and plain not in addresses():
            yield f"{method} {way}", "operation", (f"{each} {way}" for each in operations()[api])
        if (
            api
            or plain in addresses()
            or (not absolute and any(f"/{known}".endswith(f"/{plain}") for known in addresses()))
        ):
            continue
        if (not absolute and _is_file(way)) or way.strip("/…") in text_of_sources():
            continue
        parts = way.split("/")
        if way in ELSEWHERE or parts[0] in KINDS or (len(parts) == 2 and words().issuperset(parts)):
            continue  # the key of a document of the tree; an object of Kubernetes with its namespace
        yield way, "address or file", {*addresses(), *files(), *(known.removeprefix("api/v1") for known in addresses())}


def files_by_name(one: Mention) -> Iterator[Wrong]:
    names = {file.rpartition("/")[2] for file in files()}
    for name in re.findall(r"(?<![\w./<*-])[\w-]+\.(?:py|js|css|html|md)(?![\w.])", one.text):
        if name not in names and name not in text_of_sources() and not OTHERS.search(one.text):
            yield name, "file", names


def names(one: Mention) -> Iterator[Wrong]:
    """Codes of alerts, refusals, reasons and findings, members, plugins, tables: each is a word of the source."""
    for name in () if one.command or OTHERS.search(one.text) else NAME.findall(one.text):
        if name not in words():
            yield name, "name in the source", words()


def labels_of_pages(one: Mention) -> Iterator[Wrong]:
    if one.text not in labels():
        yield one.text, "label", labels()


OF_CODE: tuple[Callable[[Mention], Iterator[Wrong]], ...] = (
    make_targets,
    variables,
    options,
    commands,
    modules,
    ways,
    files_by_name,
    names,
)


def wrong(page: mentions.Page) -> list[str]:
    """What a document names and the product does not have, with the name that is nearest."""
    found = [(one, *each) for one in page.code for check in OF_CODE for each in check(one)]
    found += [(one, *each) for one in page.labels for each in labels_of_pages(one)]
    lines = []
    for one, name, kind, known in found:
        near = difflib.get_close_matches(name, set(known), 1, 0.5)
        lines.append(f"{one.place}: there is no {kind} `{name}`" + (f"; the nearest is `{near[0]}`" if near else ""))
    return lines


@pytest.mark.parametrize("path", mentions.documents(), ids=lambda path: path.name)
def test_what_a_document_names_is_there(path) -> None:
    assert not wrong(read(path)), "\n".join(wrong(read(path)))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("`make tests`", "there is no target of make `tests`; the nearest is `test`"),
        ("`STREAMS_OF_ONES`", "there is no variable `STREAMS_OF_ONES`; the nearest is `STREAMS_OF_ONE`"),
        ("`--gangs-size N`", "there is no option `--gangs-size`; the nearest is `--gang-size`"),
        ("`manage.py audits`", "there is no command of manage.py `audits`; the nearest is `audit`"),
        (
            "`manage.py audit verifies`",
            "there is no act of that command `audit verifies`; the nearest is `audit verify`",
        ),
        ("`manage.py audit verify --head FILE`", "there is no option of `manage.py audit` `--head`; the nearest is"),
        ("`python -m tests.crews`", "there is no module that runs `tests.crews`"),
        (
            "`GET /quota-changes/{id}/plans/`",
            "there is no address or file `/quota-changes/{id}/plans/`; the nearest is",
        ),
        ("`PUT /tokens/`", "there is no operation `PUT /tokens/`"),
        ("`/clusters/<slug>/drifts/`", "there is no address or file `/clusters/<slug>/drifts/`; the nearest is"),
        ("`scheduling/hold.py`", "there is no address or file `scheduling/hold.py`; the nearest is"),
        ("`quota_over_hardwares`", "there is no name in the source `quota_over_hardwares`; the nearest is"),
        ("`WaitingForCard`", "there is no name in the source `WaitingForCard`; the nearest is `WaitingForCards`"),
        ("*Adopt a queue*", "there is no label `Adopt a queue`; the nearest is `Adopt queues`"),
        ("**Clusters › Connect clusters**", "there is no label `Connect clusters`"),
    ],
)
def test_a_wrong_name_is_found_with_its_line_and_the_nearest_one(line: str, said: str) -> None:
    found = wrong(mentions.read("docs/page.md", f"# Page\n\n{line}\n"))
    assert any(text.startswith(f"docs/page.md:3: {said}") for text in found), found


def _rows(page: str, heading: str = "") -> list[list[str]]:
    """The rows of the tables of a page, or of what is below one of its headings."""
    text = (sources.ROOT / "docs" / page).read_text(encoding="utf-8")
    if heading:
        text = re.search(rf"^{heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def _first(rows: list[list[str]], pattern: str) -> list[str]:
    return [name for row in rows for name in re.findall(pattern, row[0])]


def test_every_alert_and_every_reason_is_in_its_list_and_no_other() -> None:
    assert sorted(_first(_rows("drift.md", "## Alerts"), r"`(\w+)`")) == sorted(dict(ALERT_CODES))
    text = (sources.ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    listed = re.search(r"### Reason codes\n.*?\n\n(`.*?)\n\n", text, re.DOTALL)[1]
    assert re.findall(r"`(\w+)`", listed) == [code.value for code in ReasonCode]


@pytest.mark.parametrize(
    ("page", "heading", "parser"),
    [
        ("cli.md", "## run", lambda: _subcommands(build_parser())["run"]),
        ("cli.md", "## replay", lambda: _subcommands(build_parser())["replay"]),
        ("replay.md", "", lambda: _subcommands(build_parser())["replay"]),
    ],
    ids=["run", "replay", "replay.md"],
)
def test_every_option_of_a_command_is_in_its_table_and_no_other(page, heading, parser) -> None:
    known = {name for name in parser()._option_string_actions if name.startswith("--")} - {"--help"}
    assert set(_first(_rows(page, heading), r"`(--[a-z-]+)")) == known


def test_the_simulated_cluster_has_the_options_that_its_page_shows() -> None:
    text = (sources.ROOT / "docs" / "simulated-cluster.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"(?<!\w)--[a-z][a-z-]+", text.split("\n## ")[0]))
    assert shown == {name for name in simcluster_parser()._option_string_actions if name.startswith("--")} - {"--help"}


def test_the_simulated_cluster_serves_the_kinds_that_its_page_lists() -> None:
    said = {group: re.sub(r"\(.*?\)", "", kinds) for group, kinds in _rows("simulated-cluster.md", "## What it serves")}
    listed = {(group.strip("`"), kind.strip()) for group, kinds in said.items() for kind in kinds.split(",")}
    served = {(f"{one.group}/{one.version}".lstrip("/"), one.plural) for one in RESOURCE_TYPES}
    assert listed - {("group", "kinds")} == served


def test_every_kind_of_damage_to_the_audit_log_is_in_its_table_and_no_other() -> None:
    rows = _rows("audit.md", "## Verifying")
    assert sorted(_first(rows, r"`([a-z_]+)`")) == sorted(kind.value for kind in Damage)


def defaults() -> dict[str, int]:
    """The variables whose default is a number that needs no other one."""
    found = {}
    for node in ast.walk(sources.tree(sources.ROOT / "tidesched_web" / "settings.py")):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "env.number":
            name, default = node.args
            if not any(isinstance(part, ast.Name | ast.IfExp) for part in ast.walk(default)):
                found[ast.literal_eval(name)] = eval(ast.unparse(default))  # products of numbers
    return found


def test_defaults_of_variables_are_those_of_the_table() -> None:
    known, compared = defaults(), 0
    for row in _rows("operations.md"):
        for name, said in zip(re.findall(r"`([A-Z_]+)`", row[0]), row[1].split(", "), strict=False):
            number = re.fullmatch(r"`?(\d+)`?(?: (MiB|GiB))?", said)
            if name in known and number:
                factor = {"MiB": 1 << 20, "GiB": 1 << 30}.get(number[2] or "", 1)
                assert int(number[1]) * factor == known[name], (
                    f"docs/operations.md: {name} is {known[name]}, not {said}"
                )
                compared += 1
    assert compared > 8


def test_anchors_of_links_are_headings() -> None:
    wrong_ones = []
    for path in mentions.documents():
        for page, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", path.read_text(encoding="utf-8")):
            target = path.parent / page if page else path
            known = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in read(target.resolve()).headings}
            wrong_ones += [f"{path.name}: {page}#{anchor}"] if anchor not in known else []
    assert wrong_ones == []
