"""The hidden version of a form: what is made has none, whatever is sent for one."""

from __future__ import annotations

import pytest

from tests.web.console.test_pages import client_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/new/tenant/", {"slug": "new", "name": "New"}),
        ("/new/project/", {"slug": "new", "name": "New", "tenant": "search"}),
        ("/new/user/", {"username": "new", "role": "member"}),
    ],
)
def test_a_version_that_no_page_showed_is_no_fault_of_the_form(world, path, sent):
    client = client_of(world.admin)
    assert client.post(path, {**sent, "version": "1"}).status_code in (200, 302)
