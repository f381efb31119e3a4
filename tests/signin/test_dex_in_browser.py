"""In Chromium a person of a group signs in through Dex, loses role and stream with it, and needs a second step."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opener, Watched, browser, open_browser  # noqa: F401 - fixtures
from tests.browser.demo import Demo, running
from tests.browser.watching import until
from tests.passwords import PASSWORD
from tests.signin.dex import PASSWORD as AT_DEX
from tests.signin.dex import Dex
from tests.web.test_mfa import code_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.proof]
CALLBACK = "/sign-in/with/sso/callback/"


@pytest.fixture
def dex(tmp_path: Path) -> Dex:
    return Dex(tmp_path / "dex", os.environ["DATABASE_URL"])


@pytest.fixture
def demo(dex: Dex, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Demo]:
    monkeypatch.setenv("OIDC_ISSUER", dex.issuer)
    monkeypatch.setenv("OIDC_CLIENT_ID", dex.client_id)
    monkeypatch.setenv("OIDC_CLIENT_SECRET", dex.client_secret)
    monkeypatch.setenv("OIDC_NAME", "Dex")
    monkeypatch.setenv("SIGN_IN_CHECK_SECONDS", "3")
    with running(tmp_path_factory.mktemp("demo")) as found:
        dex.redirect_uris = [f"{found.address}{CALLBACK}"]
        dex.start()
        yield found
        dex.drop()


def by_password(watched: Watched, name: str, password: str) -> None:
    watched.page.goto(f"{watched.address}/sign-in/")
    watched.page.get_by_label("User name").fill(name)
    watched.page.get_by_label("Password", exact=True).fill(password)
    watched.page.get_by_role("button", name="Sign in", exact=True).click()
    watched.page.wait_for_url(lambda url: "/sign-in/" not in url)


def by_dex(watched: Watched, name: str) -> None:
    page = watched.page
    page.goto(f"{watched.address}/sign-in/")
    page.get_by_role("link", name="Continue with Dex").click()
    page.locator("input[name=login]").fill(f"{name}@example.org")
    page.locator("input[name=password]").fill(AT_DEX)
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: url.startswith(watched.address))


def pictures(watched: Watched, name: str) -> None:
    for width in (390, 1440):
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.check()
        for theme in ("light", "dark"):
            watched.page.emulate_media(color_scheme=theme)
            watched.picture(f"sign-in-{name}-{theme}-{width}")
        watched.page.emulate_media(color_scheme="light")


def rule(watched: Watched) -> None:
    """Groups that are `gpu-admins` give the role of a platform admin."""
    page = watched.page
    watched.open("/settings/sign-in/")
    pictures(watched, "settings-empty")
    page.get_by_role("link", name="Add a rule").first.click()
    page.get_by_label("Has the value").fill("gpu-admins")
    page.get_by_label("Gets the role").select_option("admin")
    page.get_by_role("button", name="Who would get what?").click()
    expect(page.get_by_role("heading", name="Who would get what")).to_be_visible()
    expect(page.get_by_text("Nobody has signed in through this provider yet")).to_be_visible()
    pictures(watched, "rule")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("groups = gpu-admins")).to_be_visible()


def stream_of(page: Page) -> None:
    """Listen as a page does, and note why the stream ends."""
    page.evaluate("""() => {
        window.ended = "";
        const stream = new EventSource("/api/v1/stream");
        stream.onopen = () => { window.opened = true; };
        stream.addEventListener("end", (event) => { window.ended = JSON.parse(event.data).reason; stream.close(); });
    }""")
    until(page, lambda: page.evaluate("window.opened === true"))


def status(watched: Watched, path: str) -> int:
    return watched.page.request.get(f"{watched.address}{path}", max_redirects=0).status


def test_a_group_gives_and_takes_the_role(dex: Dex, demo: Demo, open_browser: Opener) -> None:  # noqa: F811 - the fixture
    admin = open_browser(demo.address, user=None)
    admin.page.goto(f"{demo.address}/sign-in/")
    pictures(admin, "door")
    by_password(admin, "admin", PASSWORD)
    rule(admin)

    ada = open_browser(demo.address, user=None)
    by_dex(ada, "ada")
    ada.open("/users/")
    expect(ada.page.get_by_role("link", name="Invite a person")).to_be_visible()
    ada.open("/clusters/demo/")
    stream_of(ada.page)

    dex.restart(groups={"ada": []})
    until(ada.page, lambda: ada.page.evaluate("window.ended !== ''"))
    assert ada.page.evaluate("window.ended") == "rights_changed"
    assert status(ada, "/users/") == 404

    dex.restart(groups={"ada": ["gpu-admins"]})
    until(ada.page, lambda: status(ada, "/users/") == 200)

    admin.open("/settings/sign-in/")
    pictures(admin, "settings-full")
    admin.page.get_by_label("Platform admin").check()
    admin.page.get_by_role("button", name="Save").click()
    expect(admin.page).to_have_url(re.compile("profile"))

    ada.page.goto(f"{demo.address}/clusters/demo/")
    expect(ada.page.get_by_text("Your role demands it")).to_be_visible()
    ada.errors.clear()  # the page that was open asked again, for what was no longer hers to see
    pictures(ada, "second-step-demanded")
    secret = ada.page.locator("pre.manifest").inner_text().strip()
    ada.page.locator("input[name=code]").fill(code_of(secret))
    ada.page.locator("form button[type=submit]").first.click()
    expect(ada.page.get_by_text("Your role demands it")).to_have_count(0)
    assert status(ada, "/users/") == 200

    dex.stop()
    someone = open_browser(demo.address, user=None)
    someone.page.goto(f"{demo.address}/sign-in/")
    someone.page.get_by_role("link", name="Continue with Dex").click()
    expect(someone.page.get_by_text("Dex does not answer")).to_be_visible()
    someone.errors.clear()  # the status of the page
    pictures(someone, "provider-down")
    by_password(someone, "admin", PASSWORD)
