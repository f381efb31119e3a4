"""The forms of a page as a browser would send them: their addresses, fields and files, read from its HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.test import Client

_ASIDE = {"csrfmiddlewaretoken"}
_VERSION = re.compile(r"(?:\w+-)?version")


@dataclass
class PageForm:
    """Where it is sent, how, and what it holds."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """Forms, the fields in them and those beside them that name their form by its id."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.found: list[PageForm] = []
        self.by_id: dict[str, PageForm] = {}
        self.beside: list[tuple[str, str, str]] = []
        self.queries: set[str] = set()
        self._open: list[PageForm] = []
        self._select = self._text = ""
        self._written: list[str] = []

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        attrs = {name: value or "" for name, value in given}
        if "hx-post" in attrs or tag == "form":
            self._begin(tag, attrs)
        if tag == "a":
            self.queries |= {name for name, _value in parse_qsl(urlsplit(attrs.get("href", "")).query)}
        name = attrs.get("name", "")
        if tag == "input" and name and name not in _ASIDE:
            self._input(name, attrs)
        elif tag == "button" and name:
            self._add(name, attrs.get("value", ""), attrs)
        elif tag == "select" and name:
            self._select = name
            self._add(name, "", attrs)
        elif tag == "textarea" and name:
            self._text, self._written = name, []
            self._add(name, "", attrs)
        elif tag == "option" and self._select and "selected" in attrs:
            self._add(self._select, attrs.get("value", ""), attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._open:
            self._open.pop()
        elif tag == "select":
            self._select = ""
        elif tag == "textarea" and self._text:
            self._add(self._text, "".join(self._written).strip("\n"), {})
            self._text = ""

    def handle_data(self, data: str) -> None:
        if self._text:
            self._written.append(data)

    def _begin(self, tag: str, attrs: dict[str, str]) -> None:
        if "hx-post" in attrs:
            action, method = attrs["hx-post"], "post"
        else:
            action, method = attrs.get("action", ""), attrs.get("method", "get").lower()
        form = PageForm(urljoin(self.url, action), method)
        self.found.append(form)
        if tag == "form":
            self._open.append(form)
            if "id" in attrs:
                self.by_id[attrs["id"]] = form

    def _input(self, name: str, attrs: dict[str, str]) -> None:
        kind = attrs.get("type", "text")
        if kind == "file":
            if self._open:
                self._open[-1].files.append(name)
            return
        if kind in ("checkbox", "radio") and "checked" not in attrs and self._open and name in self._open[-1].fields:
            return  # another one of the group is chosen
        self._add(name, attrs.get("value", "on" if kind == "checkbox" else ""), attrs)

    def _add(self, name: str, value: str, attrs: dict[str, str]) -> None:
        if "form" in attrs:
            self.beside.append((attrs["form"], name, value))
        elif self._open:
            self._open[-1].fields[name] = value


def forms_of(html: str, url: str) -> Iterator[PageForm]:
    """The forms of a page; what htmx sends by POST counts as one."""
    reader = _read(html, url)
    for form, name, value in reader.beside:
        if form in reader.by_id:
            reader.by_id[form].fields[name] = value
    yield from reader.found


def parameters_of(html: str, url: str) -> set[str]:
    """The names that the page's own links and filters put into its address."""
    reader = _read(html, url)
    return reader.queries.union(*(form.fields for form in reader.found if form.method == "get"))


def _read(html: str, url: str) -> _Reader:
    reader = _Reader(url)
    reader.feed(html)
    return reader


def version_of(client: Client, url: str) -> dict[str, str]:
    """What the forms of a page that are sent by POST say of the version that it was opened with."""
    sent = [form.fields for form in forms_of(client.get(url).content.decode(), url) if form.method == "post"]
    return {name: value for fields in sent for name, value in fields.items() if _VERSION.fullmatch(name) and value}


def post_opened(client: Client, url: str, typed: Mapping[str, str], **how: Any) -> Any:
    """Send a form as a person does who has just opened its page: with the version that it shows."""
    return client.post(url, version_of(client, url) | dict(typed), **how)
