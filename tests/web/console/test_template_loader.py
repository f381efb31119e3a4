"""Templates are kept once for each language, and say the same as Django's own would."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings
from django.template import Context, Engine, engines
from django.template.base import TextNode
from django.utils.translation import override

from tidesched_web.console.template_loader import KnownURLNode, address_of

_LIBRARIES = {"i18n": "django.templatetags.i18n", "console": "tidesched_web.console.templatetags.console"}
PIECES = [
    "{% load i18n %}{% translate 'Gangs' %}",
    "{% load i18n %}a {% translate 'Gangs' as word %}{{ word }}",
    "{% load i18n %}{% blocktranslate %}Just now{% endblocktranslate %}",
    "{% load i18n %}{% blocktranslate with n=many %}Reclaim {{ n }}{% endblocktranslate %}",
    "{% load i18n %}{% translate name %}{{ name }}",
    "{% load i18n console %}{% icon 'lock' 'me-1' %}{% state 'gang' 'running' %}{% state 'gang' state %}",
    "{% url 'console:gang' 'demo' many %}|{% url 'console:queue' 'demo' slug %}|{% url 'console:help' %}",
    "{% url 'console:gang' 'demo' many as there %}{{ there }}",
    "{% if many %}{% load i18n %}{% translate 'Queue' %}{% else %}{% translate 'Gangs' %}{% endif %}",
    "{% load i18n %}{% for one in rows %}<b>{% translate 'State' %}</b>{{ one }}{% endfor %}",
]
SAID = {"many": 7, "name": "Gangs", "state": "pending", "slug": "a&b", "rows": ["<", "x"]}


def _rendered(loaders: list, number: int) -> str:
    engine = Engine(libraries=_LIBRARIES, loaders=loaders)
    return engine.get_template(str(number)).render(Context(SAID))


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("number", range(len(PIECES)))
def test_a_template_says_what_it_says_with_djangos_own_loader(language, number):
    pieces = {str(place): text for place, text in enumerate(PIECES)}
    plain = ("django.template.loaders.locmem.Loader", pieces)
    with override(language):
        expected = _rendered([plain], number)
        assert _rendered([("tidesched_web.console.template_loader.Loader", [plain])], number) == expected


def test_what_indents_a_template_is_not_sent():
    """A page of rows would carry thousands of blanks."""
    text = "<ul>\n    <li>a b </li>  \n\n    {% if many %}\n      <li>{{ many }} c</li>\n    {% endif %}\n</ul>"
    loader = ("tidesched_web.console.template_loader.Loader", [("django.template.loaders.locmem.Loader", {"0": text})])
    with override("en"):
        assert _rendered([loader], 0) == "<ul>\n<li>a b </li>\n\n<li>7 c</li>\n\n</ul>"


@pytest.mark.parametrize(("language", "said"), [("en", "a,\nGangs.\n7 (1)"), ("zh-hans", "a，作业组。7（1）")])
def test_chinese_signs_have_no_blank_beside_them(language: str, said: str) -> None:
    """The end of a line of a template is one; what the reader has typed is not touched."""
    text = (
        "{% load i18n %}a{% translate ', ' %}\n    {% translate 'Gangs' %}{% translate '. ' %}\n    {{ many }}"
        "{% translate ' (' %}\n1{% translate ')' %}"
    )
    loader = ("tidesched_web.console.template_loader.Loader", [("django.template.loaders.locmem.Loader", {"0": text})])
    with override(language):
        assert _rendered([loader], 0).replace("(\n", "(") == said


def test_no_text_that_is_shown_as_written_is_indented():
    for path in (Path(settings.BASE_DIR) / "templates").rglob("*.html"):
        for text in re.findall(r"<(?:pre|textarea)\b[^>]*>(.*?)</(?:pre|textarea)>", path.read_text(), re.DOTALL):
            assert not re.search(r"\n\s", text), path


def test_one_template_serves_readers_of_both_languages_in_turn():
    engine = engines["django"].engine
    said = {}
    for language in ("en", "zh-hans", "en", "zh-hans"):
        with override(language):
            nodes = engine.get_template("gangs/row.html").nodelist
            said.setdefault(language, []).append("".join(node.s for node in nodes if isinstance(node, TextNode)))
    assert 'data-label="State"' in said["en"][0]
    assert 'data-label="状态"' in said["zh-hans"][0]
    assert said["en"][0] == said["en"][1]
    assert said["zh-hans"][0] == said["zh-hans"][1]


def test_what_is_constant_in_a_row_is_text():
    """A row of the list of gangs is rendered fifty times a page."""
    with override("en"):
        nodes = engines["django"].engine.get_template("gangs/row.html").nodelist
    neighbours = [isinstance(one, TextNode) and isinstance(next_, TextNode) for one, next_ in pairwise(nodes)]
    assert not any(neighbours)
    assert not [node for node in nodes if type(node).__name__ in ("TranslateNode", "LoadNode")]
    assert [node for node in nodes if isinstance(node, KnownURLNode)]


def test_an_address_is_known_by_its_prefix_too():
    from django.urls import set_script_prefix

    try:
        set_script_prefix("/tide/")
        assert address_of("console:gangs", "demo") == "/tide/clusters/demo/gangs/"
    finally:
        set_script_prefix("/")
    assert address_of("console:gangs", "demo") == "/clusters/demo/gangs/"
