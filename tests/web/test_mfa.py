"""Two-step sign-in: setting it up, signing in with it, whose role demands it, and what is kept of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from tests.passwords import PASSWORD
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import LinkKind, SignInSettings, Tenant, User
from tidesched_web.accounts.services import sign_ins
from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.errors import DomainError

TOTP_ON, SECOND_STEP = "/profile/authenticator-app/", "/sign-in/second-step/"


@pytest.fixture(autouse=True)
def fresh_counts(db: None) -> None:
    """Each test counts from nothing, and no code has been used."""
    cache.clear()


@pytest.fixture
def ann() -> User:
    return accounts.create_user(username="ann", password=PASSWORD, actor="root")


@pytest.fixture
def admin() -> User:
    return accounts.create_user(username="root", password=PASSWORD, platform_role="admin", actor="tests")


def code_of(secret: str, step: int = 0) -> str:
    """The code of now, or of so many half minutes later."""
    now = list(yield_hotp_counters_from_time())[1]
    return format_hotp_value(hotp_value(secret, now + step))


def signed_in(name: str = "ann", **headers: str) -> Client:
    client = Client()
    assert client.post("/sign-in/", {"username": name, "password": PASSWORD}).status_code == 302
    return client


def confirmed(client: Client, then: str) -> Any:
    """The page, after the password was asked for once more."""
    asked = client.get(then)
    assert asked["Location"] == f"/profile/confirm/?next={then.replace('/', '%2F')}"
    answer = client.post(asked["Location"], {"password": PASSWORD, "next": then})
    assert answer["Location"] == then, answer.content
    return client.get(then)


def enrolled(client: Client) -> tuple[str, list[str]]:
    """The key of the authenticator app and the recovery codes, as the pages show them once."""
    secret = manifest(confirmed(client, TOTP_ON))
    made = client.post(TOTP_ON, {"code": code_of(secret)})
    assert made["Location"] == "/profile/recovery-codes/", made.content
    return secret, manifest(client.get(made["Location"])).split()


def manifest(answer: Any) -> str:
    found = re.search(r'<pre class="manifest[^>]*>([^<]+)</pre>', answer.content.decode())
    assert found, answer.content.decode()
    return found[1].strip()


def second_step(client: Client | None = None, **form: str) -> tuple[Client, Any]:
    """A new sign-in by the right password, and what its second step answers."""
    if client is None:
        client = Client()
        asked = client.post("/sign-in/", {"username": "ann", "password": PASSWORD, "next": "/help/"})
        assert asked["Location"] == SECOND_STEP
        assert client.get("/profile/").status_code == 302, "not signed in yet"
    return client, client.post(SECOND_STEP, form)


def acts() -> list[str]:
    return [
        action.removeprefix("user.") for action in AuditEntry.objects.order_by("id").values_list("action", flat=True)
    ]


def demand(*roles: str) -> None:
    SignInSettings.objects.update_or_create(pk=1, defaults={"mfa_roles": list(roles)})


def test_an_authenticator_app_is_set_up_and_asked_for_at_the_next_sign_in(ann: User) -> None:
    secret, codes = enrolled(signed_in())
    assert len(codes) == 10
    client, answer = second_step(code=code_of(secret))
    assert answer["Location"] == "/help/"
    assert client.get("/profile/").status_code == 200
    assert acts() == ["create", "sign_in", "mfa_totp_on", "sign_in"]


def test_a_wrong_code_is_recorded_and_limited(ann: User) -> None:
    secret, _codes = enrolled(signed_in())
    client = None
    for _ in range(5):
        client, answer = second_step(client, code="000000")
        assert answer.status_code == 200
        assert "Incorrect code" in answer.content.decode()
    client, answer = second_step(client, code=code_of(secret))
    assert "Too many failed" in answer.content.decode()
    assert client.get("/profile/").status_code == 302
    assert acts()[-6:] == ["mfa_failed"] * 6
    assert AuditEntry.objects.order_by("-id")[0].actor == "ann"


def test_a_code_works_once_in_all_of_its_window(ann: User) -> None:
    secret, _codes = enrolled(signed_in())
    for step in (0, 1):
        code = code_of(secret, step)
        assert second_step(code=code)[1].status_code == 302
        assert second_step(code=code)[1].status_code == 200, "replayed"
    keys = list(sign_ins._client().scan_iter("*allauth.mfa.totp.used*"))
    assert keys
    assert {sign_ins._client().ttl(key) > 60 for key in keys} == {True}


def test_a_recovery_code_works_once_and_is_shown_once(ann: User) -> None:
    client = signed_in()
    _secret, codes = enrolled(client)
    again = client.get("/profile/recovery-codes/").content.decode()
    assert codes[3] not in again
    assert "10 codes are left" in again
    assert second_step(code=codes[3])[1].status_code == 302
    assert second_step(code=codes[3])[1].status_code == 200
    assert "9 codes are left" in client.get("/profile/recovery-codes/").content.decode()
    assert client.post("/profile/recovery-codes/new/")["Location"] == "/profile/recovery-codes/"
    fresh = manifest(client.get("/profile/recovery-codes/")).split()
    assert len(fresh) == 10
    assert second_step(code=codes[4])[1].status_code == 200, "of the earlier ones"
    assert second_step(code=fresh[4])[1].status_code == 302
    assert "mfa_codes" in acts()


def test_a_change_asks_for_a_proof_and_a_wrong_one_is_recorded(ann: User) -> None:
    client = signed_in()
    assert client.post(TOTP_ON, {"code": "000000"})["Location"].startswith("/profile/confirm/?")
    wrong = client.post("/profile/confirm/", {"password": "wrong", "next": TOTP_ON})
    assert wrong.status_code == 200
    assert acts()[-1] == "confirm_failed"
    secret, _codes = enrolled(signed_in())
    other, _answer = second_step(code=code_of(secret))
    assert other.get(f"{TOTP_ON}remove/")["Location"].startswith("/profile/confirm/")
    assert other.post("/profile/confirm/code/", {"code": "000000"}).status_code == 200
    assert acts()[-1] == "confirm_failed"
    by_code = other.post("/profile/confirm/code/", {"code": code_of(secret, 1), "next": f"{TOTP_ON}remove/"})
    assert by_code["Location"] == f"{TOTP_ON}remove/"
    assert other.post(f"{TOTP_ON}remove/")["Location"] == "/profile/"
    assert not Authenticator.objects.exists(), "the recovery codes went too"
    assert acts()[-1] == "mfa_totp_off"
    assert signed_in().get("/profile/").status_code == 200


def test_a_change_that_cannot_be_recorded_is_not_made(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = signed_in()
    secret = manifest(confirmed(client, TOTP_ON))

    def broken(**_entry: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("tidesched_web.accounts.services.mfa.audit.append", broken)
    client.raise_request_exception = False
    assert client.post(TOTP_ON, {"code": code_of(secret)}).status_code == 500
    assert not Authenticator.objects.exists()


def test_a_link_for_a_new_password_does_not_pass_the_second_step(ann: User) -> None:
    enrolled(signed_in())
    _link, secret = accounts.make_link(user=ann, kind=LinkKind.RESET, actor="root")
    client, new = Client(), "another long enough secret"
    answer = client.post(f"/invite/{secret}/", {"new_password": new, "repeated": new})
    assert answer["Location"] == SECOND_STEP
    assert client.get("/profile/").status_code == 302


def test_a_step_that_no_sign_in_leads_to_is_not_there(ann: User) -> None:
    assert Client().get(SECOND_STEP)["Location"] == "/sign-in/"
    client = Client()
    asked = client.get("/sign-in/passkey/", headers={"Accept": "application/json"}).json()
    assert asked["request_options"]["publicKey"]["userVerification"] == "required"
    refused = client.post("/sign-in/passkey/", {"credential": '{"id": "x"}'}, follow=True)
    assert "Incorrect code" in refused.content.decode()
    assert acts()[-1] == "sign_in_failed"


def test_no_secret_is_readable_in_the_database_and_each_is_encrypted_anew(ann: User, settings: Any) -> None:
    secret, codes = enrolled(signed_in())
    with connection.cursor() as cursor:
        cursor.execute("SELECT data::text FROM mfa_authenticator")
        kept = "\n".join(text for (text,) in cursor.fetchall())
    assert secret not in kept
    assert not [code for code in codes if code in kept]
    old, new = settings.TIDESCHED_KEYS[0], Fernet.generate_key().decode()
    settings.TIDESCHED_KEYS = [new]
    with pytest.raises(CommandError):
        call_command("credentials", "check")
    settings.TIDESCHED_KEYS = [new, old]
    call_command("credentials", "rotate")
    settings.TIDESCHED_KEYS = [new]
    call_command("credentials", "check")
    found = Authenticator.objects.get(type="totp")
    assert get_adapter().decrypt(found.data["secret"]) == secret
    settings.TIDESCHED_KEYS = [old]
    with pytest.raises(DomainError):
        get_adapter().decrypt(found.data["secret"])


@pytest.mark.parametrize("role", ["admin", "auditor", "tenant_admin", "member"])
def test_of_whom_it_is_demanded_they_do_nothing_else_first(role: str) -> None:
    platform = role if role in ("admin", "auditor") else ""
    ann = accounts.create_user(username="ann", password=PASSWORD, platform_role=platform, actor="root")
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    if not platform:
        accounts.set_membership(user=ann, tenant=tenant, role=role.removeprefix("tenant_"), actor="root")
    _token, plain = accounts.create_token(user=ann, scopes=["quota:read"], actor="root")
    other = {"admin", "auditor", "tenant_admin", "member"} - {role}
    demand(*other)
    client = signed_in()
    assert client.get("/profile/").status_code == 200, "another role's demand"
    demand(role)
    for page in ("/", "/profile/", "/profile/tokens/", "/password/"):
        assert client.get(page)["Location"] == TOTP_ON
    assert client.post("/profile/tokens/", {"name": "x"})["Location"] == TOTP_ON
    assert client.get("/profile/", headers={"HX-Request": "true"})["HX-Refresh"] == "true", "an open page goes there"
    for address in ("/api/v1/tenants/", "/api/v1/stream"):
        refused = client.get(address)
        assert (refused.status_code, refused.json()["code"]) == (403, "mfa_required")
        assert "two-step sign-in" in refused.json()["detail"]
    bearer = {"Authorization": f"Bearer {plain}"}
    assert Client().get("/api/v1/tenants/", headers=bearer).status_code == 200, "a token that there was goes on"
    assert "Your role demands it" in confirmed(client, TOTP_ON).content.decode()
    enrolled_secret = manifest(client.get(TOTP_ON))
    client.post(TOTP_ON, {"code": code_of(enrolled_secret)})
    assert client.get("/profile/").status_code == 200
    assert client.get("/api/v1/tenants/").status_code == 200


def test_an_open_stream_ends_where_it_is_demanded(ann: User) -> None:
    from tidesched_web.accounts.stream_selectors import caller_of_session, standings

    client = signed_in()
    caller = caller_of_session(ann, client.session.session_key or "")
    Tenant.objects.create(slug="acme", name="Acme").memberships.create(user=ann, role="member")
    assert set(standings([caller])) == {caller}
    demand("member")
    assert standings([caller]) == {}


def test_an_admin_resets_that_of_another(ann: User, admin: User) -> None:
    enrolled(signed_in())
    client = signed_in("root")
    page = client.get(f"/users/{ann.pk}/").content.decode()
    place = f"/users/{ann.pk}/two-step-sign-in/reset/"
    assert place in page
    assert client.post(place, {"reason": ""}).status_code == 400, "without a reason"
    assert client.post(place, {"reason": "lost the phone"})["Location"] == f"/users/{ann.pk}/"
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.action, entry.actor, entry.object_label) == ("user.mfa_reset", "root", "ann")
    assert (entry.reason, entry.before) == ("lost the phone", {"methods": ["recovery_codes", "totp"]})
    assert signed_in().get("/profile/").status_code == 200
    assert client.post(place, {"reason": "again"}).status_code == 400
    own = client.post(f"/users/{admin.pk}/two-step-sign-in/reset/", {"reason": "mine"})
    assert "your own account" in own.content.decode()
    assert signed_in().post(place, {"reason": "x"}).status_code == 404


def test_an_account_that_is_switched_off_is_refused_at_the_second_step(ann: User) -> None:
    secret, _codes = enrolled(signed_in())
    client = Client()
    client.post("/sign-in/", {"username": "ann", "password": PASSWORD})
    accounts.deactivate_user(user=ann, actor="root", reason="gone")
    client.post(SECOND_STEP, {"code": code_of(secret)})
    assert client.get("/profile/").status_code == 302
