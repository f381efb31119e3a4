"""Accounts, passwords, memberships, and the commands that an operator runs."""

import io
import threading

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections
from django.test import Client

from tests import quota_writes
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import ApiToken, PlatformRole, User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.errors import DomainError

PASSWORD = "correct horse battery staple"


@pytest.fixture
def ann(db):
    return accounts.create_user(username="ann", password=PASSWORD, actor="root")


def command(*words, **options):
    out, err = io.StringIO(), io.StringIO()
    call_command(*words, stdout=out, stderr=err, **options)
    return out.getvalue()


def test_the_token_command_prints_the_token_and_nothing_else(ann):
    quota_writes.ensure_tenant(slug="acme", actor="root")
    accounts.set_membership(user=ann, tenant=ann.tenants.model.objects.get(), role="member", actor="root")
    printed = command(
        "token",
        "create",
        "ann",
        "--scope",
        "quota:read",
        "--scope",
        "audit:read",
        "--expires",
        "90d",
        "--tenant",
        "acme",
    )
    assert printed.endswith("\n")
    assert printed.count("\n") == 1
    stored = ApiToken.objects.get()
    assert (stored.scopes, stored.tenant.slug) == (["quota:read", "audit:read"], "acme")
    client = Client(headers={"Authorization": f"Bearer {printed.strip()}"})
    assert [row["slug"] for row in client.get("/api/v1/tenants/").json()["results"]] == ["acme"]
    assert printed.strip() not in command("token", "list")
    call_command("token", "revoke", stored.prefix, stderr=io.StringIO())
    assert client.get("/api/v1/tenants/").status_code == 401


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create", "bob", "--scope", "quota:read"), "Unknown user 'bob'. Known users: ann."),
        (("create", "ann", "--scope", "quota"), "Unknown scope 'quota'. Known scopes: cluster:read, quota:read,"),
        (("create", "ann", "--scope", "admin", "--tenant", "acme"), "Unknown tenant 'acme'. Known tenants: none yet."),
        (("create", "ann", "--scope", "admin", "--expires", "0d"), "'0d' is no life time"),
        (("list", "bob"), "Unknown user 'bob'"),
        (("revoke", "tide_nothing"), "0 tokens fit"),
    ],
)
def test_bad_input_of_the_token_command_is_exit_status_2(ann, words, message):
    with pytest.raises(CommandError) as refused:
        command("token", *words)
    assert refused.value.returncode == 2
    assert str(refused.value).startswith(message)
    assert not ApiToken.objects.exists()


def test_the_user_command_makes_members_and_service_accounts(db, monkeypatch):
    quota_writes.ensure_tenant(slug="acme", actor="root")
    monkeypatch.setenv("TIDESCHED_PASSWORD", PASSWORD)
    command("user", "create", "ann", "--tenant", "acme:admin", "--role", "auditor")
    ann = User.objects.get(username="ann")
    assert ann.check_password(PASSWORD)
    assert (ann.memberships.get().role, ann.platform_role) == ("admin", "auditor")
    command("user", "create", "robot", "--service")
    assert not User.objects.get(username="robot").has_usable_password()
    with pytest.raises(CommandError, match="already"):
        command("user", "create", "ann")


def test_a_password_is_changed_with_the_old_one_and_weak_ones_are_refused(ann):
    with pytest.raises(DomainError) as refused:
        accounts.change_password(user=ann, old_password="wrong", new_password=PASSWORD + "!", actor="ann")
    assert refused.value.code == "wrong_password"
    with pytest.raises(DomainError) as refused:
        accounts.change_password(user=ann, old_password=PASSWORD, new_password="12345678", actor="ann")
    assert refused.value.code == "weak_password"
    accounts.change_password(user=ann, old_password=PASSWORD, new_password=PASSWORD + "!", actor="ann")
    ann.refresh_from_db()
    assert ann.check_password(PASSWORD + "!")
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


@pytest.mark.django_db(transaction=True)
def test_two_first_starts_make_one_admin():
    start, made = threading.Barrier(4), []

    def ensure():
        try:
            start.wait()
            made.append(accounts.ensure_admin(username="admin", password=PASSWORD))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ensure) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, False, True]
    assert access_of(User.objects.get()).administers


def test_rights_of_roles(ann):
    tenant = quota_writes.ensure_tenant(slug="acme", actor="root")
    accounts.set_membership(user=ann, tenant=tenant, role="admin", actor="root")
    access = access_of(ann)
    assert (access.everything, access.administers, access.admin_of) == (False, False, {tenant.pk})
    ann.platform_role = PlatformRole.AUDITOR
    assert (access_of(ann).everything, access_of(ann).administers) == (True, False)
    ann.is_active = False
    assert access_of(ann).tenant_ids == frozenset()


def test_the_same_membership_again_writes_no_entry(ann):
    tenant = quota_writes.ensure_tenant(slug="acme", actor="root")
    for _ in range(2):
        accounts.set_membership(user=ann, tenant=tenant, role="member", actor="root")
    assert AuditEntry.objects.filter(action="membership.set").count() == 1
    accounts.remove_membership(membership=ann.memberships.get(), actor="root")
    assert not ann.memberships.exists()
