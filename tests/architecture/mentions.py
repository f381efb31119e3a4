"""What the documents name, line by line: code, and labels of pages and buttons (in italics, or a way with `›`)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture import sources

# Blocks of these languages are commands; others are data, or programs that a test runs.
COMMANDS = {"", "console", "sh"}
CODE = re.compile(r"`([^`\n]+)`")
ITALIC = re.compile(r"(?<![*\w])\*([A-Z][^*|]{1,60}?)\*(?!\*)")
BOLD = re.compile(r"\*\*([^*|]{2,60}?)\*\*")


@dataclass(frozen=True)
class Mention:
    """A piece of code or a label of a document; ``command``: a line of a block of commands."""

    place: str
    text: str
    command: bool = False


@dataclass(frozen=True)
class Page:
    """What one document names."""

    code: tuple[Mention, ...]
    labels: tuple[Mention, ...]
    headings: frozenset[str]


def documents() -> list[Path]:
    """What is true of the product now: the history of changes is not."""
    top = [path for path in sources.ROOT.glob("*.md") if path.stem != "CHANGELOG"]
    return sorted([*(sources.ROOT / "docs").rglob("*.md"), *top])


def read(name: str, text: str) -> Page:
    """Find what a document names."""
    code, plain, headings = [], [], set()
    language: str | None = None
    command = ""
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}:{number}"
        if line.lstrip().startswith("```"):
            language = line.strip().removeprefix("```") if language is None else None
        elif language is not None:
            # A command that goes on in the next line is one command.
            command += line.removesuffix("\\")
            if language in COMMANDS and not line.endswith("\\"):
                code.append(Mention(place, command, command=True))
            command = command if line.endswith("\\") else ""
        else:
            code += [Mention(place, span) for span in CODE.findall(line)]
            headings |= {line.lstrip("# ")} if line.startswith("#") else set()
            plain.append(CODE.sub(lambda span: " " * len(span[0]), line))
            continue
        plain.append("")
    return Page(tuple(code), tuple(_labels(name, "\n".join(plain))), frozenset(headings))


def _labels(name: str, text: str) -> Iterator[Mention]:
    ways = [found for found in BOLD.finditer(text) if "›" in found[1]]
    single = ITALIC.finditer(BOLD.sub(lambda bold: " " * len(bold[0]) if "\n" not in bold[0] else bold[0], text))
    for found in [*ways, *single]:
        line = text.count("\n", 0, found.start()) + 1
        for label in " ".join(found[1].split()).split(" › "):
            yield Mention(f"{name}:{line}", label)
