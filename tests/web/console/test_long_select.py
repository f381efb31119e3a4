"""A field with hundreds of options: the element that Django makes, without a template for each option."""

import pytest
from django import forms
from django.test.html import parse_html

from tidesched_web.console.forms.long_select import LongSelect

FLAT = [("", "none"), ("Asia/Shanghai", "Asia/Shanghai"), ('a"b', "<b>&"), (3, "three")]
GROUPS = [
    ("Projects", [("project-1", "Ember › ads"), ("project-2", "Ember › <chat>")]),
    ("Lines & more", [("line-1", "x")]),
]


@pytest.mark.parametrize("choices", [FLAT, GROUPS, []])
@pytest.mark.parametrize("value", [None, "", 'a"b', "3", 3, "project-2", "unknown"])
@pytest.mark.parametrize("attrs", [{}, {"required": True, "id": "id_zone", "disabled": False, "title": '"<'}])
def test_the_element_is_the_one_of_django(choices, value, attrs):
    own = {"class": "form-select"}
    long, plain = LongSelect(attrs=own, choices=choices), forms.Select(attrs=own, choices=choices)
    assert parse_html(long.render("zone", value, attrs)) == parse_html(plain.render("zone", value, attrs))


def test_no_template_is_rendered_for_an_option(monkeypatch):
    monkeypatch.setattr(LongSelect, "_render", lambda *_args, **_more: pytest.fail("a template was rendered"))
    assert LongSelect(choices=FLAT).render("zone", "").count("<option") == len(FLAT)
