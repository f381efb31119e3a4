"""What a page says after an act, of a closed change and before the sign-in is as it is, and said once."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from tests.web.console.cast import H200
from tests.web.console.test_changes import drafted
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Tenant

pytestmark = pytest.mark.django_db


def text(page: bytes) -> str:
    return html.unescape(" ".join(page.decode().split()))


def test_switching_approval_on_and_off_says_what_holds_and_not_that_the_cluster_is_sent_something(world) -> None:
    client = client_of(world.admin)
    for said in (
        "From now on a second person has to approve each change of the quota of Search.",
        "Changes of the quota of Search are applied without the approval of a second person from now on.",
    ):
        version = Tenant.objects.get(slug="search").version
        sent = client.post("/tenants/search/approval/", {"reason": "so decided", "version": version}, follow=True)
        page = text(sent.content)
        if "waits for the approval" in page:  # switching it off is a change of that tenant itself
            continue
        assert said in page
        assert "go to the cluster" not in page


def test_of_a_cancelled_change_it_is_not_said_that_nothing_differs(world) -> None:
    client = client_of(world.admin)
    change = drafted(client, {"queue/search-training": {"card_quota": {H200: 16}}})
    address = f"/clusters/demo/changes/{change.pk}/"
    sent = client.post(f"{address}cancel/", {"revision": change.revision}, follow=True)
    page = text(sent.content)
    change.refresh_from_db()
    assert change.state == "cancelled", page[-3000:]
    assert "Nothing: the change is closed, and what it asked for was not written." in page
    assert "No object of the cluster differs now" not in page


def test_the_page_of_an_invitation_has_the_languages_and_its_rules_are_in_them(world) -> None:
    sent = {"username": "first-timer", "email": "first-timer@example.com", "role": "member"}
    page = client_of(world.admin).post("/tenants/search/invite/", sent)
    address = re.search(r"http://testserver(/invite/[^<]+)<", page.content.decode())
    assert address is not None, text(page.content)[-3000:]
    client = Client()
    assert 'href="?language=zh-hans"' in client.get(address[1]).content.decode()
    assert client.get(f"{address[1]}?language=zh-hans")["Location"] == address[1]
    short = client.post(address[1], {"new_password": "12345", "repeated": "12345"})
    assert short.status_code == 400
    said = text(short.content)
    assert "密码太短：至少需要 10 个字符。" in said
    assert "too short" not in said
