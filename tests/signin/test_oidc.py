"""Signing in through a provider, what it may send that does not hold, and what becomes of people afterwards."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.signin.provider import Provider
from tests.web.test_mfa import code_of, manifest
from tidesched_web.accounts import oidc
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import (
    Identity,
    IdentityProvider,
    PlatformRole,
    SignInRule,
    Tenant,
    User,
)
from tidesched_web.accounts.services import identities, sign_in_settings
from tidesched_web.accounts.stream_selectors import caller_of_session, caller_of_token, standings
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.verification import verify_all
from tidesched_web.common.encryption import key_id
from tidesched_web.common.errors import DomainError
from tidesched_web.scheduling.models import Alert
from tidesched_web.scheduling.pipeline import sign_in_alerts

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "correct horse battery staple"


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.stop()


@pytest.fixture
def admin() -> User:
    return accounts.create_user(username="root-admin", password=PASSWORD, actor="t", platform_role=PlatformRole.ADMIN)


@pytest.fixture
def row(provider: Provider, admin: User) -> IdentityProvider:
    return sign_in_settings.save_provider(
        provider=None, actor="t", slug="corp", name="Corp", issuer=provider.issuer, client_id=provider.client_id,
        secret=provider.client_secret, scopes="openid profile offline_access", enabled=True,
    )  # fmt: skip


@pytest.fixture
def rule(row: IdentityProvider, admin: User) -> SignInRule:
    return sign_in_settings.save_rule(
        rule=None, provider=row, claim="groups", value="gpu-admins", role="admin", actor="t", by=admin.pk
    )


def begin(client: Client, slug: str = "corp", **query: str) -> str:
    """The address at which the provider sends the person back."""
    there = client.get(f"/sign-in/with/{slug}/", query)
    assert there.status_code == 302, there.content
    back = requests.get(there.headers["Location"], allow_redirects=False, timeout=60)
    place = urlsplit(back.headers["Location"])
    return f"{place.path}?{place.query}"


def signed_in(slug: str = "corp", **query: str) -> Client:
    client = Client()
    answer = client.get(begin(client, slug, **query))
    assert answer.status_code == 302, answer.content
    return client


def check(user: User) -> None:
    """The check, when it is due."""
    Identity.objects.filter(user=user).update(checked_at=timezone.now() - dt.timedelta(hours=1))
    assert identities.check_due() == 1


def test_the_first_sign_in_makes_an_account_with_the_roles_of_its_groups(provider: Provider, rule: SignInRule) -> None:
    client = signed_in()
    ada = User.objects.get(username="ada")
    assert (ada.issuer, ada.subject, ada.platform_role) == (provider.issuer, "id-of-ada", "admin")
    assert ada.role_given_by == rule.edited_by, "who wrote the rule stands behind the role"
    assert not ada.has_usable_password()
    assert client.get("/users/").status_code == 200
    signed_in()
    assert User.objects.filter(username__startswith="ada").count() == 1
    entry = AuditEntry.objects.filter(action="user.sign_in").latest("id")
    assert (entry.actor_issuer, entry.actor_subject) == (provider.issuer, "id-of-ada")
    assert all(report.intact for report in verify_all())
    provider.subject = "ben"
    assert signed_in().get("/users/").status_code == 404, "no rule gives him a role"


def test_a_name_that_is_taken_is_not_taken_over(provider: Provider, row: IdentityProvider, admin: User) -> None:
    provider.claims = {"preferred_username": "root-admin"}
    client = signed_in()
    assert client.get("/users/").status_code == 404
    assert User.objects.get(subject="id-of-ada").username == "root-admin-2"


def test_who_leaves_the_group_loses_the_role_the_stream_and_the_tokens_reach(
    provider: Provider, rule: SignInRule
) -> None:
    client = signed_in()
    ada = User.objects.get(username="ada")
    token, plain = accounts.create_token(user=ada, actor="t", name="", scopes=["admin"])
    callers = [caller_of_session(ada, client.session.session_key or ""), caller_of_token(token, plain)]
    before = standings(callers)
    assert len(before) == 2
    provider.groups["ada"] = []
    check(ada)
    ada.refresh_from_db()
    assert ada.platform_role == ""
    after = standings(callers)
    assert all(after[caller] != before[caller] for caller in callers), "the open streams end"
    bearer = {"Authorization": f"Bearer {plain}"}
    assert Client(headers=bearer).get("/api/v1/users/").json()["results"] == []
    assert client.get("/users/").status_code == 404
    provider.groups["ada"] = ["gpu-admins"]
    check(ada)
    ada.refresh_from_db()
    assert ada.platform_role == "admin"


def test_whom_the_provider_no_longer_knows_is_signed_out_everywhere(provider: Provider, rule: SignInRule) -> None:
    client = signed_in()
    ada = User.objects.get(username="ada")
    _token, plain = accounts.create_token(user=ada, actor="t", name="", scopes=["admin"])
    provider.refuses_refresh = True
    check(ada)
    assert client.get("/profile/").status_code == 302
    bearer = {"Authorization": f"Bearer {plain}"}
    assert Client(headers=bearer).get("/api/v1/users/").status_code == 401, "and so are the tokens"
    call_command("credentials", "rotate")
    ada.refresh_from_db()
    assert ada.platform_role == ""
    assert AuditEntry.objects.filter(action="user.no_longer_vouched").exists()
    provider.refuses_refresh = False
    assert signed_in().get("/users/").status_code == 200, "a new sign-in ends it"
    assert Client(headers=bearer).get("/api/v1/users/").status_code == 200


def test_a_role_by_hand_stays_when_the_groups_go(provider: Provider, rule: SignInRule, row: IdentityProvider) -> None:
    tenant = Tenant.objects.create(slug="vision", name="Vision")
    sign_in_settings.save_rule(
        rule=None, provider=row, claim="groups", value="gpu-admins", role="member", tenant=tenant, actor="t",
        by=rule.edited_by_id or 0,
    )  # fmt: skip
    signed_in()
    ada = User.objects.get(username="ada")
    assert ada.memberships.get().role == "member"
    accounts.set_membership(user=ada, tenant=tenant, role="admin", actor="t")
    provider.groups["ada"] = []
    check(ada)
    ada.refresh_from_db()
    assert (ada.platform_role, ada.memberships.get().role) == ("", "admin")


def test_a_provider_that_is_down_takes_no_role_and_raises_an_alert(provider: Provider, rule: SignInRule) -> None:
    signed_in()
    ada = User.objects.get(username="ada")
    provider.statuses["/.well-known/openid-configuration"] = 503
    check(ada)
    ada.refresh_from_db()
    assert ada.platform_role == "admin"
    sign_in_alerts.look()
    assert Alert.objects.get(code="identity_provider_fails").resolved_at is None
    provider.statuses.clear()
    assert identities.check_due() == 1, "it is asked again at once"
    sign_in_alerts.look()
    assert Alert.objects.get(code="identity_provider_fails").resolved_at is not None


@pytest.mark.parametrize(
    "spoilt",
    [
        {"claims": {"aud": "another"}},
        {"claims": {"iss": "https://elsewhere.example"}},
        {"claims": {"aud": ["tidesched", "another"], "azp": "another"}},
        {"clock": 3600},
        {"clock": -3600},
        {"unknown_key": True},
    ],
)
def test_a_token_that_does_not_hold_signs_nobody_in(spoilt: dict[str, Any], provider: Provider, row: object) -> None:
    vars(provider).update(spoilt)
    client = Client()
    answer = client.get(begin(client))
    assert answer.status_code == 400
    assert "nobody is signed in" in answer.content.decode()
    assert not User.objects.filter(username="ada").exists()
    assert AuditEntry.objects.filter(action="user.sign_in_refused").exists()


def test_a_small_skew_and_a_rotated_key_are_borne(provider: Provider, row: object) -> None:
    provider.clock = 30
    signed_in()
    provider.rotate()
    provider.clock = -30
    signed_in()
    check(User.objects.get(username="ada"))


def test_a_code_is_good_once_and_for_the_browser_that_asked(provider: Provider, row: object) -> None:
    client = Client()
    back = begin(client)
    assert Client().get(back).status_code == 400, "another browser"
    assert client.get(back).status_code == 302
    client.post("/sign-out/")
    again = client.get(back)
    assert again.status_code == 400
    assert "used already" in again.content.decode()
    fresh = Client()
    state = begin(fresh).partition("state=")[2]
    code = back.partition("code=")[2].partition("&")[0]
    assert fresh.get(f"/sign-in/with/corp/callback/?code={code}&state={state}").status_code == 400, "a used code"


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
def test_a_provider_that_is_down_has_a_page_that_says_so(path: str, provider: Provider, row: object) -> None:
    client = Client()
    back = begin(client)
    provider.statuses[path] = 500
    at_begin = path.startswith("/.well")
    answer = client.get("/sign-in/with/corp/" if at_begin else back)
    assert answer.status_code in (400, 502)
    assert "Not signed in" in answer.content.decode()


def test_a_provider_that_hangs_is_not_waited_for(
    provider: Provider, row: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "TIMEOUT", 0.2)
    provider.hanging.add("/.well-known/openid-configuration")
    answer = Client().get("/sign-in/with/corp/")
    assert answer.status_code == 502
    assert "Corp does not answer" in answer.content.decode()


def test_what_the_provider_says_instead_is_shown(row: object) -> None:
    client = Client()
    state = begin(client).partition("state=")[2]
    answer = client.get(f"/sign-in/with/corp/callback/?error=access_denied&error_description=not+today&state={state}")
    assert answer.status_code == 400
    assert "cancelled" in answer.content.decode()
    foreign = Client().get("/sign-in/with/corp/callback/?error=x&error_description=call+this+number&state=zzz")
    assert "call this number" not in foreign.content.decode()


def test_a_wrong_client_secret_is_called_so(provider: Provider, row: IdentityProvider) -> None:
    facts = {"slug": "corp", "name": "Corp", "issuer": row.issuer, "client_id": row.client_id, "scopes": row.scopes}
    sign_in_settings.save_provider(provider=row, actor="t", secret="another", enabled=True, **facts)
    client = Client()
    assert "its client ID or its secret is wrong" in client.get(begin(client)).content.decode()


def test_who_comes_from_a_provider_has_no_password_to_set(row: IdentityProvider, admin: User) -> None:
    signed_in()
    ada = User.objects.get(username="ada")
    client = Client()
    client.force_login(admin, "tidesched_web.accounts.backend.AccountBackend")
    page = client.get(f"/users/{ada.pk}/").content.decode()
    assert "Single sign-on" in page
    assert "invitation" not in page
    with pytest.raises(DomainError):
        accounts.make_link(user=ada, kind="invite", actor="t")


def test_signing_out_ends_the_session_at_the_provider_too(provider: Provider, row: object) -> None:
    client = signed_in()
    page = client.post("/sign-out/").content.decode()
    assert f"url={provider.issuer}/logout?id_token_hint=" in page
    assert client.get("/profile/").status_code == 302
    provider.statuses["/.well-known/openid-configuration"] = 500
    assert signed_in_anyway(provider).post("/sign-out/").status_code == 302


def signed_in_anyway(provider: Provider) -> Client:
    spoilt, provider.statuses = provider.statuses, {}
    client = signed_in()
    provider.statuses = spoilt
    return client


def test_local_accounts_can_be_switched_off_but_for_break_glass(row: object, admin: User) -> None:
    other = accounts.create_user(username="eve", password=PASSWORD, actor="t")
    settings = {"local_accounts": False, "mfa_roles": [], "actor": "t"}
    with pytest.raises(DomainError):
        sign_in_settings.save_settings(break_glass=other, **settings)
    before = Client()
    before.post("/sign-in/", {"username": "eve", "password": PASSWORD})
    assert before.get("/profile/").status_code == 200
    sign_in_settings.save_settings(break_glass=admin, **settings)
    assert before.get("/profile/").status_code == 302, "open sessions end"
    refused = Client().post("/sign-in/", {"username": "eve", "password": PASSWORD})
    assert refused.status_code == 403
    assert "sign in through your provider" in refused.content.decode()
    assert AuditEntry.objects.get(action="user.sign_in_refused").object_label == "eve"
    with pytest.raises(DomainError):
        accounts.deactivate_user(user=admin, actor="t", reason="gone")
    sign_in_alerts.look()
    assert not Alert.objects.filter(code="break_glass").exists()
    assert Client().post("/sign-in/", {"username": "root-admin", "password": PASSWORD}).status_code == 302
    for _ in range(2):
        sign_in_alerts.look()
    assert Alert.objects.get(code="break_glass").numbers["user"] == "root-admin"


def test_the_rule_page_shows_who_would_get_what(provider: Provider, row: IdentityProvider, admin: User) -> None:
    signed_in()
    client = Client()
    client.force_login(admin, "tidesched_web.accounts.backend.AccountBackend")
    form = {"provider": "corp", "claim": "groups", "value": "gpu-admins", "role": "auditor"}
    page = client.post("/settings/sign-in/new/rule/", form | {"act": "preview"}).content.decode()
    assert "The roles of 1 person of 1 change." in page
    assert not SignInRule.objects.exists()
    assert client.post("/settings/sign-in/new/rule/", form).status_code == 302
    assert User.objects.get(username="ada").platform_role == "auditor", "at once, for those who are known"
    made = SignInRule.objects.get()
    gone = client.post(f"/settings/sign-in/rules/{made.pk}/remove/", {"reason": "over", "version": made.version})
    assert gone.status_code == 302
    assert User.objects.get(username="ada").platform_role == ""


def test_an_issuer_is_asked_when_it_is_saved_and_stays_once_people_came(
    provider: Provider, row: IdentityProvider
) -> None:
    facts = {"name": "Corp", "client_id": "x", "scopes": "openid", "enabled": True}
    with pytest.raises(DomainError) as refused:
        sign_in_settings.save_provider(
            provider=None, actor="t", slug="b", issuer="http://127.0.0.1:9/", **facts
        )  # fmt: skip
    assert refused.value.extra["errors"][0]["pointer"] == "/issuer"
    signed_in()
    with pytest.raises(DomainError):
        sign_in_settings.save_provider(
            provider=row, actor="t", slug="corp", issuer="http://127.0.0.1:9", **facts
        )  # fmt: skip


def test_an_account_is_not_connected_to_another_identity(provider: Provider, rule: SignInRule, admin: User) -> None:
    client = signed_in()
    provider.subject = "ben"
    client.get(begin(client, process="connect"))
    assert signed_in().get("/users/").status_code == 404, "ben is not ada"
    local = Client()
    local.force_login(admin, "tidesched_web.accounts.backend.AccountBackend")
    local.get(begin(local, process="connect"))
    assert not SocialAccount.objects.filter(user=admin).exists()
    SocialAccount.objects.create(user=admin, provider="corp", uid="id-of-cleo")
    provider.subject = "cleo"
    provider.groups["cleo"] = []
    assert client.get(begin(client)).status_code == 400, "a row that a person did not make"


def test_one_person_who_cannot_be_checked_keeps_nobody_else_from_it(provider: Provider, rule: SignInRule) -> None:
    signed_in()
    provider.subject, provider.groups["ben"] = "ben", ["gpu-admins"]
    signed_in()
    Identity.objects.update(checked_at=timezone.now() - dt.timedelta(hours=1))
    ada = Identity.objects.get(user__username="ada")
    provider.refused = {"ada": 500}
    provider.groups["ben"] = []
    assert identities.check_due() == 2
    assert set(User.objects.filter(platform_role="admin").values_list("username", flat=True)) == {"ada", "root-admin"}
    Identity.objects.filter(pk=ada.pk).update(
        checked_at=timezone.now() - dt.timedelta(hours=1), vouched_at=timezone.now() - dt.timedelta(hours=25)
    )
    identities.check_due()
    assert User.objects.get(username="ada").platform_role == "", "for a day at most"


@pytest.mark.parametrize("spoilt", [{"clock": 3600}, {"unknown_key": True}, {"claims": {"aud": "another"}}])
def test_a_fault_of_the_provider_ends_nobody(spoilt: dict[str, Any], provider: Provider, rule: SignInRule) -> None:
    client = signed_in()
    vars(provider).update(spoilt)
    check(User.objects.get(username="ada"))
    assert client.get("/users/").status_code == 200
    assert IdentityProvider.objects.get().failing_since is not None


def test_a_check_under_way_does_not_end_a_new_sign_in(provider: Provider, rule: SignInRule) -> None:
    signed_in()
    late = Identity.objects.select_related("provider").get()
    client = signed_in()
    identities.end(identity=late, why="the token of before")
    assert client.get("/users/").status_code == 200


def test_a_claim_that_cannot_be_kept_signs_nobody_in(provider: Provider, row: object) -> None:
    for claims in ({"name": "a\0b"}, {"sub": "x" * 300}):
        provider.claims = claims
        client = Client()
        assert client.get(begin(client)).status_code == 400


def test_a_provider_may_be_named_as_the_protocol(provider: Provider, row: IdentityProvider) -> None:
    facts = {"name": "Other", "client_id": "x", "scopes": "openid", "issuer": "https://other.example"}
    sign_in_settings.save_provider(provider=None, actor="t", slug="oidc", enabled=False, **facts)
    IdentityProvider.objects.filter(slug="oidc").update(enabled=True)
    signed_in()


def test_secrets_are_sealed_and_turn_with_the_keys(
    provider: Provider, row: IdentityProvider, rule: object, settings: Any
) -> None:
    client = signed_in()
    identity = Identity.objects.get()
    for model in (row, identity):
        assert provider.client_secret.encode() not in b"".join(
            bytes(v) for v in vars(model).values() if isinstance(v, memoryview | bytes)
        )
    from cryptography.fernet import Fernet

    fresh = Fernet.generate_key().decode()
    settings.TIDESCHED_KEYS = [fresh, *settings.TIDESCHED_KEYS]
    call_command("credentials", "rotate")
    settings.TIDESCHED_KEYS = [Fernet.generate_key().decode()]
    assert client.get("/sign-in/with/corp/").status_code in (302, 502)
    with pytest.raises(CommandError):
        call_command("credentials", "check")
    settings.TIDESCHED_KEYS = [fresh]
    identity.refresh_from_db()
    assert identity.refresh_key_id == key_id(fresh)
    check(identity.user)


def test_a_provider_comes_by_the_environment(provider: Provider, settings: Any) -> None:
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID = provider.issuer, provider.client_id
    settings.OIDC_CLIENT_SECRET = provider.client_secret
    assert sign_in_settings.provider_of_environment()
    assert not sign_in_settings.provider_of_environment()
    assert IdentityProvider.objects.get().slug == "sso"
    client = signed_in("sso")
    settings.OIDC_ISSUER = ""
    assert sign_in_settings.provider_of_environment()
    assert client.get("/profile/").status_code == 302, "who came through it is signed out"
    assert not IdentityProvider.objects.get().enabled


def test_a_second_step_is_demanded_of_who_comes_from_a_provider_too(rule: SignInRule) -> None:
    sign_in_settings.save_settings(local_accounts=True, break_glass=None, mfa_roles=["admin"], actor="t")
    client = signed_in()
    asked = client.get("/", follow=True)
    assert asked.status_code == 200
    assert "Your role demands it" in asked.content.decode()
    secret = manifest(asked)
    assert client.post(asked.redirect_chain[-1][0], {"code": code_of(secret)}).status_code == 302
    assert client.get("/users/").status_code == 200
    assert signed_in().get("/users/").status_code == 302, "the second step comes first"
