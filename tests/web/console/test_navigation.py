"""The groups of the navigation: every page has its place, and what a reader closed stays closed."""

from __future__ import annotations

from django.test import Client

from tidesched_web.accounts.services import create_user
from tidesched_web.console.navigation import COOKIE, GROUPS, groups
from tidesched_web.console.page_help import ABOUT


def shown(**more: object) -> list[dict[str, object]]:
    return groups(**{"section": "", "cluster": "demo", "everything": True, "writes": True, "closed": ""} | more)  # type: ignore[arg-type]


def test_each_page_stands_in_one_group_and_names_itself() -> None:
    entries = [entry for group in GROUPS for entry in group.entries]
    assert len({entry.section for entry in entries}) == len(entries)
    for entry in entries:
        [current] = [
            one
            for group in shown(section=entry.section, everything=not entry.of_tenants)
            for one in group["entries"]
            if one["exact"]
        ]
        assert current["word"] == entry.word
    assert [one["exact"] for group in shown(section="adoption") for one in group["entries"] if one["current"]] == [
        False
    ]


def test_a_closed_group_opens_for_its_own_page() -> None:
    def closed(section: str) -> set[object]:
        return {group["name"] for group in shown(section=section, closed="quota.owners.nonsense") if not group["open"]}

    assert closed("gangs") == {"quota", "owners"}
    assert closed("queues") == {"owners"}


def test_a_reader_sees_the_pages_that_are_open_to_them() -> None:
    def words(**more: object) -> set[str]:
        return {str(one["address"]) for group in shown(**more) for one in group["entries"]}  # type: ignore[attr-defined]

    assert {"/users/", "/clusters/demo/connection/"}.isdisjoint(words(everything=False))
    assert words(cluster="").isdisjoint({"/clusters/demo/"})
    assert "/tenants/" in words(cluster="", everything=False)
    assert "/waiting/" in words(everything=False)
    assert "/waiting/" not in words(writes=False)


def test_the_seldom_used_stands_below_settings_and_begins_closed(db) -> None:
    client = Client()
    client.force_login(create_user(username="root", password=None, platform_role="admin", actor="tests"))
    page = client.get("/profile/").content.decode()
    assert 'data-nav-group="settings">' in page, "closed"
    assert 'data-nav-group="owners" open>' in page
    client.cookies[COOKIE] = "owners"
    page = client.get("/profile/").content.decode()
    assert 'data-nav-group="settings" open>' in page, "what a reader opened stays open"
    assert 'data-nav-group="owners">' in page


def test_each_page_leads_to_what_it_is_for(db: None) -> None:
    sections = {entry.section for group in GROUPS for entry in group.entries} - {"help"}
    assert set(ABOUT) == sections
    client = Client()
    client.force_login(create_user(username="ann", password=None, platform_role="admin", actor="root"))
    assert 'href="/help/#about-tenants"' in client.get("/tenants/").content.decode()
    page = client.get("/help/").content.decode()
    assert {name for name in sections if f'<dt id="about-{name}">' in page} == sections - {"home"}
