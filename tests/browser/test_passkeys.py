"""Two-step sign-in with the browser's own virtual authenticator."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Opener, Watched
from tests.passwords import PASSWORD

DEVICE = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


def look(watched: Watched, name: str) -> None:
    """In each theme and in each width once."""
    for theme, width in (("light", 1440), ("dark", 390)):
        watched.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.picture(f"mfa-{name}-{theme}-{width}")
        watched.check()


def press(page: Page, name: str) -> None:
    """By the keyboard alone."""
    button = page.get_by_role("button", name=name, exact=True)
    button.focus()
    page.keyboard.press("Enter")


def password(page: Page) -> None:
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")


def test_a_passkey_signs_in_alone_and_as_the_second_step(site: str, open_browser: Opener) -> None:
    # An address of digits has no passkeys.
    watched = open_browser(site.replace("127.0.0.1", "localhost"), user=None)
    page = watched.page
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    device = devices.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})["authenticatorId"]
    watched.open("/sign-in/")
    look(watched, "sign-in")
    page.get_by_label("User name").fill("keeper")
    password(page)
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Sign in")
    watched.open("/profile/")
    page.get_by_role("link", name="Add a passkey").click()
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    look(watched, "confirm")
    password(page)
    page.get_by_label("Name").fill("this laptop")
    look(watched, "passkey")
    page.get_by_label("It also signs me in without a password").check()
    press(page, "Add")
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    look(watched, "codes")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download them").click()
    assert re.fullmatch(r"(\d{8}\n){10}", Path(download.value.path()).read_text())
    page.get_by_role("link", name="Back to the profile").click()
    expect(page.get_by_text("this laptop")).to_be_visible()
    look(watched, "profile")
    watched.open("/profile/authenticator-app/")
    look(watched, "totp")

    page.context.clear_cookies()
    watched.open("/sign-in/")
    press(page, "Sign in with a passkey")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Sign in")
    watched.open("/profile/")
    expect(page.get_by_text("this laptop")).to_be_visible()

    page.context.clear_cookies()
    watched.open("/sign-in/?next=/help/")
    page.get_by_label("User name").fill("keeper")
    password(page)
    expect(page.get_by_role("heading", name="Second step")).to_be_visible()
    look(watched, "second-step")
    press(page, "Use a passkey")
    page.wait_for_url("**/help/")

    held = devices.send("WebAuthn.getCredentials", {"authenticatorId": device})["credentials"]
    assert [one["rpId"] for one in held] == ["localhost"]
    devices.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    page.context.clear_cookies()
    watched.open("/sign-in/")
    press(page, "Sign in with a passkey")
    expect(page.get_by_role("alert").filter(has_text="No passkey was used")).to_be_visible()
    look(watched, "no-passkey")
    assert base64.b64decode(held[0]["privateKey"]), "the device alone has it"
