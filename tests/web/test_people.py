"""Accounts: invited, changed, switched off; links that work once; the last admin stays."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import AccessLink, Tenant, User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.errors import DomainError

pytestmark = pytest.mark.django_db
ACTOR, PASSWORD = "root", "a long enough password"


def invite(**more: object) -> tuple[User, str]:
    user, _link, secret = accounts.invite_user(username="mei", actor=ACTOR, **more)  # type: ignore[arg-type]
    return user, secret


def code_of(act: object, **arguments: object) -> str:
    with pytest.raises(DomainError) as refused:
        act(**arguments)  # type: ignore[operator]
    return refused.value.code


def test_an_invitation_sets_a_password_once() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    user, secret = invite(email="mei@example.com", memberships={tenant: "admin"})
    assert user.memberships.get().role == "admin"
    assert secret not in str(list(AccessLink.objects.values()))
    assert secret not in str(list(AuditEntry.objects.values()))
    assert code_of(accounts.use_link, secret=secret, new_password="12345") == "weak_password"
    assert accounts.use_link(secret=secret, new_password=PASSWORD).check_password(PASSWORD)
    assert code_of(accounts.use_link, secret=secret, new_password=PASSWORD) == "link_is_dead"
    assert AuditEntry.objects.order_by("-id").first().action == "user.use_invite_link"


def test_a_link_dies_by_time_by_the_next_one_and_with_its_account() -> None:
    user, first = invite()
    AccessLink.objects.update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    assert code_of(accounts.use_link, secret=first, new_password=PASSWORD) == "link_is_dead"
    _link, second = accounts.make_link(user=user, kind="reset", actor=ACTOR)
    _link, third = accounts.make_link(user=user, kind="reset", actor=ACTOR)
    assert code_of(accounts.use_link, secret=second, new_password=PASSWORD) == "link_is_dead"
    accounts.deactivate_user(user=user, reason="left", actor=ACTOR)
    assert code_of(accounts.use_link, secret=third, new_password=PASSWORD) == "link_is_dead"
    assert code_of(accounts.make_link, user=user, kind="reset", actor=ACTOR) == "conflict"
    assert accounts.activate_user(user=user, actor=ACTOR)
    assert code_of(accounts.use_link, secret=third, new_password=PASSWORD) == "link_is_dead"


def test_the_last_admin_who_can_sign_in_stays() -> None:
    admin = accounts.create_user(username="root", password=PASSWORD, platform_role="admin", actor=ACTOR)
    accounts.create_user(username="robot", password=None, platform_role="admin", actor=ACTOR)
    assert code_of(accounts.deactivate_user, user=admin, reason="x", actor=ACTOR) == "last_admin"
    assert code_of(accounts.update_user, user=admin, platform_role="", actor=ACTOR) == "last_admin"
    accounts.create_user(username="second", password=PASSWORD, platform_role="admin", actor=ACTOR)
    assert accounts.update_user(user=admin, platform_role="auditor", reason="shift ends", actor=ACTOR)
    entry = AuditEntry.objects.order_by("-id").first()
    assert (entry.before, entry.after) == ({"platform_role": "admin"}, {"platform_role": "auditor"})
    last = User.objects.get(username="second")
    last.platform_role = ""  # as a caller read the row before it became the last admin's
    assert code_of(accounts.deactivate_user, user=last, reason="x", actor=ACTOR) == "last_admin"
    assert code_of(accounts.update_user, user=last, platform_role="auditor", actor=ACTOR) == "last_admin"


def test_switching_off_asks_why_and_happens_once() -> None:
    user = accounts.create_user(username="mei", password=PASSWORD, actor=ACTOR)
    assert code_of(accounts.deactivate_user, user=user, reason=" ", actor=ACTOR) == "reason_required"
    assert accounts.deactivate_user(user=user, reason="left", actor=ACTOR)
    assert not accounts.deactivate_user(user=user, reason="left", actor=ACTOR)
    assert not accounts.update_user(user=user, first_name="", actor=ACTOR)
    assert code_of(accounts.update_user, user=user, platform_role="emperor", actor=ACTOR) == "invalid"


def invited_to(acme: Tenant) -> tuple[User, str]:
    user, _link, secret = accounts.invite_user(
        username="mei", memberships={acme: "member"}, of_tenant=acme, actor="lead"
    )
    return user, secret


def test_an_admin_of_a_tenant_invites_into_it() -> None:
    acme = Tenant.objects.create(slug="acme", name="Acme")
    user, first = invited_to(acme)
    assert AuditEntry.objects.get(action="user.invite_link").tenant_ids == [acme.pk]
    _link, second = accounts.invite_again(membership=user.memberships.get(), actor="lead")
    assert code_of(accounts.use_link, secret=first, new_password=PASSWORD) == "link_is_dead"
    assert accounts.use_link(secret=second, new_password=PASSWORD).check_password(PASSWORD)
    assert code_of(accounts.invite_again, membership=user.memberships.get(), actor="lead") == "conflict"


@pytest.mark.parametrize("more", ["tenant", "role", "token", "password", "left"])
def test_an_invitation_of_a_tenant_opens_nothing_beyond_it(more: str) -> None:
    """The maker of the link knows its secret: what others gave the account meanwhile is not for them."""
    acme, rival = (Tenant.objects.create(slug=slug, name=slug) for slug in ("acme", "rival"))
    user, secret = invited_to(acme)
    mine = user.memberships.get()
    if more == "tenant":
        accounts.set_membership(user=user, tenant=rival, role="admin", actor=ACTOR)
    elif more == "role":
        accounts.update_user(user=user, platform_role="admin", actor=ACTOR)
    elif more == "token":
        accounts.create_token(user=user, name="ci", scopes=["quota:read"], expires_at=None, actor=ACTOR)
    elif more == "password":
        user.set_password(PASSWORD)
        user.save()
    else:
        accounts.remove_membership(membership=mine, actor=ACTOR)
    assert code_of(accounts.use_link, secret=secret, new_password=PASSWORD) == "link_is_dead"
    if more != "left":
        assert code_of(accounts.invite_again, membership=mine, actor="lead") == "conflict"
    user.refresh_from_db()
    if more != "password":
        _link, other = accounts.make_link(user=user, kind="invite", actor=ACTOR)
        assert accounts.use_link(secret=other, new_password=PASSWORD), "a platform admin's link works"
