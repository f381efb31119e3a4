"""Every page answers a reader of Chinese."""

import pytest

from tests.web.console.test_pages import PAGES, address, client_of
from tidesched_web.accounts.models import User

pytestmark = pytest.mark.django_db
MORE = [
    "alerts/", "audit/", "audit/integrity/", "clusters/demo/alerts/", "clusters/demo/card-types/",
    "clusters/demo/changes/", "clusters/demo/connection/", "clusters/demo/drift/", "clusters/demo/policy/",
    "clusters/demo/priority-classes/", "clusters/demo/tide-plans/", "clusters/demo/tide-steps/", "status/", "tenants/",
    "tenants/search/", "users/",
]  # fmt: skip


def test_every_page_comes_in_chinese(world, subtests) -> None:
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    client = client_of(world.admin)
    for page in (*PAGES, *MORE):
        with subtests.test(page):
            response = client.get(address(page, world))
            assert response.status_code == 200
            assert 'lang="zh-hans"' in response.content.decode()
