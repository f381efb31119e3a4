"""A field to choose one of hundreds: Django renders a template for each option of its own, which takes milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class LongSelect(forms.Select):
    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        own = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        return format_html("<select{}>{}</select>", flatatt(own), _options(self.choices, set(self.format_value(value))))


def _options(choices: Iterable[Any], chosen: set[str]) -> SafeString:
    return format_html_join("", "{}", ((_option(key, label, chosen),) for key, label in choices))


def _option(key: Any, label: Any, chosen: set[str]) -> SafeString:
    if isinstance(label, list | tuple):  # a group: its name, and the choices in it
        return format_html("\n<optgroup{}>{}\n</optgroup>", flatatt({"label": key}), _options(label, chosen))
    return format_html("\n<option{}>{}</option>", flatatt({"value": key, "selected": str(key) in chosen}), label)
