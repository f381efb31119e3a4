"""What a page says to its reader, as lines: texts, links, forms with their fields and choices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import groupby

# All other elements begin a line.
_INLINE = {
    "a", "abbr", "b", "code", "em", "i", "img", "input", "kbd", "mark", "s", "small", "span", "strong", "sub", "sup",
    "td", "th", "time", "use", "wbr",
}  # fmt: skip
_SKIPPED = {"head", "script", "style", "svg"}
_FIELDS = {"input", "select", "textarea", "button", "option"}
_MOST_CHOICES = 80
_STATES = ("required", "disabled", "checked", "selected", "multiple", "readonly", "open")
_ADDRESSES = ("hx-get", "hx-post")
_SAID = ("aria-label", "title", "placeholder", "alt")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line: list[str] = []
        self._skipped = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in _SKIPPED
        attrs = {name: value or "" for name, value in given}
        if self._skipped or attrs.get("name") == "csrfmiddlewaretoken":
            return
        if tag not in _INLINE:
            self.end_line()
        words = _field(tag, attrs) if tag in _FIELDS else []
        if tag == "form":
            words = ["form", attrs.get("method", "get"), *filter(None, [attrs.get("action")])]
        words += [name for name in _STATES if name in attrs]
        words += [f"{name}={attrs[name]}" for name in _ADDRESSES if name in attrs]
        words += [f'{name}="{attrs[name]}"' for name in _SAID if attrs.get(name)]
        self._line.append(" | " if tag in ("td", "th") else " [" if tag == "a" else " ")
        if tag == "a":
            self._links.append(attrs.get("href", ""))
        if words:
            self._line.append(f"<{' '.join(words)}> ")
        if tag in ("form", "input"):
            self.end_line()

    def handle_endtag(self, tag: str) -> None:
        if not self._skipped:
            self._line.append(f"]({self._links.pop()}) " if tag == "a" and self._links else " ")
            if tag not in _INLINE:
                self.end_line()
        self._skipped -= tag in _SKIPPED

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._line.append(data)

    def end_line(self) -> None:
        """Whitespace is folded; a line without a word is none."""
        line = re.sub(r"\s+", " ", "".join(self._line)).strip().replace("[ ", "[").replace(" ](", "](")
        self._line = []
        if line.strip("| "):
            self.lines.append(line)


def _field(tag: str, attrs: dict[str, str]) -> list[str]:
    """A field's kind, name and value; the values of hidden ones are versions and the like."""
    value = "" if attrs.get("type") == "hidden" or not attrs.get("value") else f"={attrs['value']}"
    return [tag, *filter(None, [attrs.get("type"), attrs.get("name", "") + value])]


def text_of(html: str, *, framed: bool) -> str:
    """The lines of a page; without its frame what stands in `main`, if there is one."""
    title = re.search(r"<title>(.*?)</title>", html, re.DOTALL)
    main = re.search(r"<main.*</main>", html, re.DOTALL)
    reader = _Reader()
    reader.feed(html if framed or main is None else main[0])
    reader.end_line()
    heading = [f"title: {' '.join(title[1].split())}"] if title else []
    return "\n".join([*heading, *_folded(reader.lines)])


def _folded(lines: list[str]) -> Iterator[str]:
    """Of hundreds of choices (time zones) the first and the chosen ones say enough."""
    for is_choice, group in groupby(lines, lambda line: line.startswith("<option")):
        run = list(group)
        if is_choice and len(run) > _MOST_CHOICES:
            run = [*run[:3], *(line for line in run[3:] if " selected>" in line), "and more choices"]
        yield from run
