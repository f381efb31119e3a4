"""The management pages, light and dark, wide and narrow, English and Chinese, empty and with mistakes: no errors."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.test_pages import LOOKS, visit

CLUSTER = "/clusters/demo"
PAGES = {
    "tenants": "/tenants/",
    "tenant": "/tenants/search/",
    "tenant-new": "/new/tenant/",
    "tenant-delete": "/tenants/search/delete/",
    "members": "/tenants/search/members/",
    "member-invite": "/tenants/search/invite/",
    "projects": "/projects/",
    "project": "/tenants/search/projects/search-rank-inference/",
    "business-lines": "/business-lines/",
    "users": "/users/",
    "user": "/users/1/",
    "user-new": "/new/user/",
    "sign-in": "/settings/sign-in/",
    "provider-new": "/settings/sign-in/new/provider/",
    "queue-new": f"{CLUSTER}/new/queue/",
    "queue-edit": f"{CLUSTER}/queues/search-training/edit/",
    "queue-close": f"{CLUSTER}/queues/search-training/close/",
    "queue-delete": f"{CLUSTER}/queues/search-training/delete/",
    "grants": f"{CLUSTER}/grants/",
    "grant-new": f"{CLUSTER}/new/grant/",
    "card-types": f"{CLUSTER}/card-types/",
    "card-type-new": f"{CLUSTER}/new/card-type/",
    "card-type-edit": f"{CLUSTER}/card-types/1/edit/",
    "rules": f"{CLUSTER}/rules/",
    "priority-classes": f"{CLUSTER}/priority-classes/",
    "priority-class-replace": f"{CLUSTER}/priority-classes/pc-low/replace/",
    "cluster-new": "/new/cluster/?way=token",
    "cluster-offer": "/new/cluster/3/",
    "cluster-settings": f"{CLUSTER}/settings/",
    "connection": f"{CLUSTER}/connection/",
    "policy": f"{CLUSTER}/policy/",
    "policy-revision": f"{CLUSTER}/policy/1/",
}
EMPTY = ("tenants", "projects", "business-lines", "grants", "card-types", "policy")
# Sent as they are: what is wrong is said at the fields.
WRONG = ("tenant-new", "queue-new", "grant-new", "user-new", "cluster-new")


@pytest.mark.proof
@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_management_page(
    site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(site, theme=theme, width=width)
    for name, path in PAGES.items():
        with subtests.test(name):
            visit(watched, f"manage-{name}", path, f"{theme}-{width}")


@pytest.mark.proof
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_in_chinese_and_with_mistakes(
    site: str, open_browser: Opener, theme: str, width: int, subtests: pytest.Subtests
) -> None:
    watched = open_browser(site, theme=theme, width=width, language="zh-hans")
    for name in WRONG:
        with subtests.test(name):
            visit(watched, f"manage-{name}", PAGES[name], f"zh-{theme}-{width}")
            watched.page.locator("main form[method=post] button[type=submit]").last.click()
            watched.page.locator(".text-danger").first.wait_for()
            first = watched.page.locator("main [aria-invalid=true]").first
            expect(first).to_be_focused()
            expect(first).to_be_in_viewport()
            watched.errors.clear()  # the browser reports the status of the answer as an error
            watched.picture(f"manage-{name}-wrong-zh-{theme}-{width}")
            watched.check()


@pytest.mark.proof
def test_empty_pages_say_what_comes_first(bare_site: str, open_browser: Opener, subtests: pytest.Subtests) -> None:
    watched = open_browser(bare_site)
    for name in EMPTY:
        with subtests.test(name):
            visit(watched, f"manage-empty-{name}", PAGES[name], "light-1440")


def test_by_keyboard_a_tenant_is_made(site: str, open_browser: Opener) -> None:
    page = open_browser(site).page
    page.goto(f"{site}/new/tenant/")
    page.locator("#id_slug").focus()
    page.keyboard.type("keyboard")
    page.keyboard.press("Tab")
    page.keyboard.type("By keyboard")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tenants/keyboard/")
    expect(page.get_by_role("status").filter(has_text="By keyboard")).to_be_visible()
