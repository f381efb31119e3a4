"""Tokens in the profile, and those of all accounts for platform admins."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.test import Client
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.cast import PASSWORD
from tests.web.console.test_pages import client_of
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import ApiToken, LinkKind, User
from tidesched_web.audit.models import AuditEntry

pytestmark = pytest.mark.django_db
NEW = {"name": "build farm", "scopes": ["quota:read", "quota:write"], "expires": "30d"}


@pytest.fixture
def admin() -> User:
    return story.people()[0]


@pytest.fixture
def ann(admin: User) -> User:
    return accounts.create_user(username="ann", password=PASSWORD, actor="tests")


def test_a_token_is_made_shown_once_used_and_revoked(ann: User) -> None:
    client = client_of(ann)
    assert "You have no tokens" in client.get("/profile/tokens/").content.decode()
    page = client.post("/profile/tokens/", NEW)
    assert page.headers["Cache-Control"] == "no-store, private" or "no-store" in page.headers["Cache-Control"]
    plain = re.search(r"tide_[A-Za-z0-9_-]{43}", page.content.decode())
    assert plain is not None
    made = ApiToken.objects.get()
    assert (made.name, made.scopes, made.user) == ("build farm", ["quota:read", "quota:write"], ann)
    assert dt.timedelta(days=29) < made.expires_at - timezone.now() <= dt.timedelta(days=30)
    later = client.get("/profile/tokens/").content.decode()
    assert plain[0] not in later
    assert "build farm" in later
    caller = Client(headers={"Authorization": f"Bearer {plain[0]}"})
    assert caller.get("/api/v1/tenants/").status_code == 200
    assert "0 s ago" in client.get("/profile/tokens/").content.decode() or ApiToken.objects.get().last_used_at
    assert client.post(f"/profile/tokens/{made.pk}/revoke/")["Location"] == "/profile/tokens/"
    assert caller.get("/api/v1/tenants/").status_code == 401
    assert "Revoked" in client.get("/profile/tokens/").content.decode()
    acts = AuditEntry.objects.filter(object_type="token").order_by("id")
    assert [(row.action, row.actor_kind) for row in acts] == [("token.create", "user"), ("token.revoke", "user")]


def test_what_is_missing_is_said_at_its_field(ann: User) -> None:
    page = client_of(ann).post("/profile/tokens/", {"name": "", "expires": "30d"})
    assert page.status_code == 400
    assert "Choose at least one." in page.content.decode()
    assert not ApiToken.objects.exists()


def test_tokens_of_others_are_not_there(ann: User) -> None:
    bob = accounts.create_user(username="bob", password=None, actor="tests")
    token, _plain = accounts.create_token(user=bob, scopes=["quota:read"], name="bobs", actor="tests")
    client = client_of(ann)
    assert "bobs" not in client.get("/profile/tokens/").content.decode()
    assert client.post(f"/profile/tokens/{token.pk}/revoke/").status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None
    assert client.get("/users/tokens/").status_code == 403


def test_tokens_of_switched_off_accounts_are_not_live(admin: User, ann: User) -> None:
    accounts.create_token(user=ann, scopes=["quota:read"], name="anns", actor="tests")
    accounts.create_token(user=admin, scopes=["quota:read"], name="admins", actor="tests")
    accounts.deactivate_user(user=ann, actor="tests", reason="left")
    client = client_of(admin)
    live = client.get("/users/tokens/?state=live").content.decode()
    assert "admins" in live
    assert "anns" not in live
    off = client.get("/users/tokens/?state=account_off").content.decode()
    assert "anns" in off
    assert "Account switched off" in off
    states = {row["name"]: row["state"] for row in client.get("/api/v1/tokens/").json()["results"]}
    assert states == {"anns": "account_off", "admins": "live"}
    token = ApiToken.objects.get(name="anns")
    assert client.post(f"/profile/tokens/{token.pk}/revoke/")["Location"] == "/users/tokens/"


def test_a_reset_link_ends_the_tokens(ann: User) -> None:
    accounts.create_token(user=ann, scopes=["quota:read"], actor="tests")
    _link, secret = accounts.make_link(user=ann, kind=LinkKind.RESET, actor="tests")
    assert ApiToken.objects.get().state == "live", "the link alone ends nothing"
    new = {"new_password": "an even longer password", "repeated": "an even longer password"}
    assert Client().post(f"/invite/{secret}/", new).status_code == 302
    assert ApiToken.objects.get().state == "revoked"
    assert AuditEntry.objects.get(action="user.use_reset_link").after == {"tokens_revoked": 1}


@pytest.mark.parametrize(("asked", "state"), [({}, "live"), ({"end_tokens": "on"}, "revoked")])
def test_a_change_of_password_asks_about_the_tokens(ann: User, asked: dict[str, str], state: str) -> None:
    accounts.create_token(user=ann, scopes=["quota:read"], actor="tests")
    new = "an even longer password"
    form = {"old_password": PASSWORD, "new_password": new, "repeated": new}
    assert client_of(ann).post("/password/", form | asked).status_code == 302
    assert ApiToken.objects.get().state == state


@pytest.mark.parametrize(("length", "status"), [(9, 400), (10, 302)])
def test_a_password_has_ten_characters(ann: User, length: int, status: int) -> None:
    new = "w4ves-&-tides"[:length]
    form = {"old_password": PASSWORD, "new_password": new, "repeated": new}
    assert client_of(ann).post("/password/", form).status_code == status
