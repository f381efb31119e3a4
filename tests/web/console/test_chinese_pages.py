"""The pages as a reader of Chinese sees them, put together."""

from __future__ import annotations

import html
import re

import pytest

from tests.web.console.test_pages import PAGES, address, client_of
from tidesched_web.accounts.models import User

pytestmark = pytest.mark.django_db
MORE = [
    "alerts/",
    "audit/",
    "audit/integrity/",
    "clusters/demo/alerts/",
    "clusters/demo/card-types/",
    "clusters/demo/changes/",
    "clusters/demo/connection/",
    "clusters/demo/drift/",
    "clusters/demo/policy/",
    "clusters/demo/priority-classes/",
    "clusters/demo/tide-plans/",
    "clusters/demo/tide-steps/",
    "status/",
    "tenants/",
    "tenants/search/",
    "users/",
]
# What the reader has typed, and what is shown as it is written.
AS_WRITTEN = re.compile(r"<(script|style|pre|textarea|svg|template|option)\b.*?</\1>", re.DOTALL)
INLINE = re.compile(r"</?(?:a|abbr|b|bdi|code|em|i|span|strong|time)\b[^>]*>")
BESIDE_A_SIGN = re.compile(
    r"[^\x00]{0,40}(?:[，、；：。！？（）]\s+(?=[^\s\x00])|[^\s\x00]\s+(?=[，、；：。！？（）]))[^\x00]{0,20}"
)


def sentences(page: str) -> str:
    """The text of a page, a NUL where a block begins or ends."""
    text = INLINE.sub("", AS_WRITTEN.sub("\x00", page.partition("<main")[2]))
    return html.unescape(re.sub(r"<[^>]*>", "\x00", text))


def test_no_blank_is_beside_a_chinese_sign(world, subtests) -> None:
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    client = client_of(world.admin)
    for page in (*PAGES, *MORE):
        with subtests.test(page):
            response = client.get(address(page, world))
            assert response.status_code == 200
            found = [" ".join(text.split()) for text in BESIDE_A_SIGN.findall(sentences(response.content.decode()))]
            assert not found, "\n".join(found)
