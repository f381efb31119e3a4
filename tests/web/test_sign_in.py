"""Signing in under attack: limits, no lock-out of others, the client's address, hashing, and what is recorded."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import User
from tidesched_web.accounts.services import sign_ins
from tidesched_web.accounts.tasks import record_rest
from tidesched_web.audit.models import AuditEntry
from tidesched_web.common import request_context
from tidesched_web.common.client_address import client_address

PASSWORD = "correct horse battery staple"
_addresses = (f"10.{a}.{b}.{c}" for a, b, c in itertools.product(range(200), range(200), range(1, 200)))


@pytest.fixture
def ann(db):
    return accounts.create_user(username="ann", password=PASSWORD, actor="root")


@pytest.fixture(autouse=True)
def fresh_counts():
    """Each test counts from nothing."""
    client = sign_ins._client()
    client.delete(sign_ins.REST, sign_ins.TAKEN)
    for key in client.scan_iter("tidesched:1:*"):
        if "sign-in" in key or "allauth" in key:
            client.delete(key)


def fresh() -> str:
    """An address that no test has used."""
    return next(_addresses)


def sign_in(address: str, name: str = "ann", password: str = "wrong", **headers: str) -> Any:
    return Client(REMOTE_ADDR=address, headers=headers).post("/sign-in/", {"username": name, "password": password})


def limits(settings: Any, **rates: str) -> None:
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | rates


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


def test_one_address_has_five_tries_at_one_account_and_others_are_not_locked_out(ann):
    here, there = fresh(), fresh()
    assert [sign_in(here).status_code for _ in range(7)] == [200] * 5 + [429] * 2
    refused = sign_in(here, password=PASSWORD)
    assert refused.status_code == 429, "the right password is not tried either"
    assert 200 < int(refused.headers["Retry-After"]) <= 300
    assert refused.headers["Retry-After"] in refused.content.decode()
    assert sign_in(there, password=PASSWORD).status_code == 302, "ann herself, from elsewhere"


def test_the_limit_speaks_the_readers_language(ann):
    here = fresh()
    answers = [sign_in(here, **{"Accept-Language": "zh-CN"}) for _ in range(6)]
    assert "尝试次数过多" in answers[-1].content.decode()


def test_one_password_at_twenty_names_is_limited(ann):
    here = fresh()
    answers = Counter(sign_in(here, f"name{n}", "Spring2026!").status_code for n in range(20))
    assert answers == {200: 10, 429: 10}


def test_refused_tries_leave_the_other_people_of_the_address_theirs(ann):
    """Ten failures a minute of one address: five at ann, thirty that are refused, and then five more of a neighbour."""
    here = fresh()
    assert [sign_in(here).status_code for _ in range(35)] == [200] * 5 + [429] * 30
    assert [sign_in(here, "ben").status_code for _ in range(5)] == [200] * 5
    assert sign_in(here, "ben").status_code == 429


def test_a_try_that_comes_before_its_pause_is_over_uses_nothing_up(ann, settings):
    limits(settings, login_account="1/10m/key", login_failed="3/m/ip")
    assert sign_in(fresh()).status_code == 200
    here = fresh()
    assert [sign_in(here).status_code for _ in range(9)] == [200] + [429] * 8
    assert [sign_in(here, f"name{n}").status_code for n in range(3)] == [200, 200, 429], "three failures of the address"


def test_many_right_sign_ins_of_one_address_end_at_its_limit(ann, settings):
    limits(settings, login="3/m/ip")
    here = fresh()
    assert [sign_in(here, password=PASSWORD).status_code for _ in range(4)] == [302, 302, 302, 429]
    assert actions()[-1] == "user.sign_in_limited"


def test_a_zero_byte_in_the_name_is_refused_like_any_other_name(ann, settings):
    limits(settings, login="1/m/ip")
    here = fresh()
    assert [sign_in(here, "an\0n").status_code for _ in range(2)] == [200, 429]
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.action, entry.object_label) == ("user.sign_in_limited", "an\N{REPLACEMENT CHARACTER}n")


def test_failures_from_many_addresses_only_ask_each_for_a_pause(ann, settings):
    limits(settings, login_account="6/10m/key")
    for _ in range(6):
        assert sign_in(fresh()).status_code == 200
    here = fresh()
    assert sign_in(here).status_code == 200
    again = sign_in(here)
    assert again.status_code == 429
    assert 1 <= int(again.headers["Retry-After"]) <= 30
    assert sign_in(fresh(), password=PASSWORD).status_code == 302, "the account is never closed"


def test_the_limit_in_all_lets_those_through_who_have_signed_in_from_there(ann, settings):
    home = fresh()
    assert sign_in(home, password=PASSWORD).status_code == 302
    limits(settings, login_all="4/m/key")
    answers = [sign_in(fresh(), f"name{n}").status_code for n in range(6)]
    assert answers == [200] * 4 + [429] * 2
    assert sign_in(home, password=PASSWORD).status_code == 302


def test_a_right_password_uses_nothing_up(ann):
    here = fresh()
    assert [sign_in(here, password=PASSWORD).status_code for _ in range(12)] == [302] * 12


def test_the_old_password_cannot_be_guessed_without_limit(ann):
    client = Client(REMOTE_ADDR=fresh())
    client.force_login(ann)

    def change(old: str, new: str = "an even longer password") -> int:
        return client.post("/password/", {"old_password": old, "new_password": new, "repeated": new}).status_code

    assert [change("wrong") for _ in range(6)] == [400] * 5 + [429]
    assert change(PASSWORD) == 429
    assert actions()[-3:] == ["user.change_password_failed"] * 2 + ["user.change_password_limited"]
    ann.refresh_from_db()
    assert ann.check_password(PASSWORD)


def test_a_weak_new_password_is_no_guess(ann):
    client = Client(REMOTE_ADDR=fresh())
    client.force_login(ann)
    form = {"old_password": PASSWORD, "new_password": "12345", "repeated": "12345"}
    assert [client.post("/password/", form).status_code for _ in range(8)] == [400] * 8


def test_refused_tokens_of_one_network_of_ipv6_count_together(ann, settings):
    """One host has all of it."""
    settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 3
    network = f"2001:db8:{next(_addresses).split('.')[3]}:{next(_addresses).split('.')[3]}"

    def asked(address: str) -> int:
        return (
            Client(REMOTE_ADDR=address).get("/api/v1/queues/", headers={"Authorization": "Bearer tide_x"}).status_code
        )

    assert [asked(f"{network}::{number:x}") for number in range(1, 6)] == [401] * 3 + [429] * 2
    assert asked("2001:db8:ffff:8::1") == 401


def test_refused_tokens_count_as_requests_of_their_address(ann, settings):
    settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 3
    here = fresh()
    bad = Client(REMOTE_ADDR=here, headers={"Authorization": "Bearer tide_nothing"})
    answers = [bad.get("/api/v1/tenants/") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [401] * 3 + [429] * 2
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert Client(REMOTE_ADDR=here).get("/api/v1/tenants/").status_code == 429, "no token at all counts too"
    _token, plain = accounts.create_token(user=ann, scopes=["quota:read"], actor="ann")
    right = Client(REMOTE_ADDR=here, headers={"Authorization": f"Bearer {plain}"})
    assert right.get("/api/v1/tenants/").status_code == 200, "a right token is not locked out"


@pytest.mark.parametrize(
    ("behind", "proxies", "peer", "forwarded", "client"),
    [
        (False, [], "127.0.0.1", "6.6.6.6", "127.0.0.1"),
        (True, [], "10.0.0.9", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        (True, [], "10.0.0.9", "", "10.0.0.9"),
        (True, [], "10.0.0.9", "1.2.3.4, unknown", "10.0.0.9"),
        (True, ["10.0.0.0/8"], "10.0.0.9", "6.6.6.6, 1.2.3.4, 10.0.0.3", "1.2.3.4"),
        (True, ["10.0.0.0/8"], "10.0.0.9", "10.0.0.2, 10.0.0.3", "10.0.0.9"),
        (True, ["10.0.0.0/8"], "9.9.9.9", "1.2.3.4", "9.9.9.9"),
        (True, ["10.0.0.0/8"], "::ffff:10.0.0.9", "1.2.3.4:5555", "1.2.3.4"),
        (True, ["fd00::/8"], "fd00::1", '"[2001:db8::7]:443"', "2001:db8::7"),
        (True, ["10.0.0.0/8"], "10.0.0.9", "<script>, 10.0.0.3", "10.0.0.9"),
    ],
)
def test_the_client_is_the_first_hop_that_is_no_proxy_of_ours(settings, behind, proxies, peer, forwarded, client):
    settings.BEHIND_PROXY, settings.TRUSTED_PROXIES = behind, proxies
    assert client_address(peer, [forwarded] if forwarded else []) == client


def test_rotating_headers_do_not_make_new_addresses(ann):
    here = fresh()
    answers = [sign_in(here, **{"X-Forwarded-For": fresh()}).status_code for _ in range(7)]
    assert answers == [200] * 5 + [429] * 2
    assert set(AuditEntry.objects.filter(action__startswith="user.sign_in").values_list("address")) == {(here,)}


def test_behind_a_proxy_limits_and_log_use_the_client(ann, settings):
    settings.TRUSTED_PROXIES, settings.BEHIND_PROXY = ["192.0.2.0/24"], True
    attacker, owner = fresh(), fresh()
    for _ in range(6):
        sign_in("192.0.2.1", **{"X-Forwarded-For": f"9.9.9.9, {attacker}"})
    answer = sign_in("192.0.2.1", password=PASSWORD, **{"X-Forwarded-For": owner})
    assert answer.status_code == 302, "the proxy is not what is counted"
    assert AuditEntry.objects.get(action="user.sign_in").address == owner


def test_each_act_is_in_the_audit_log(ann):
    here = fresh()
    for name in ("ann", "no-such-name", "x\u202e" + "y" * 100):
        sign_in(here, name)
    client = Client(REMOTE_ADDR=here)
    client.post("/sign-in/", {"username": "ann", "password": PASSWORD})
    client.post("/sign-out/")
    entries = AuditEntry.objects.filter(action__startswith="user.sign").order_by("id")
    rows = [(row.action.removeprefix("user."), row.actor, row.actor_kind, row.object_label) for row in entries]
    assert rows == [
        ("sign_in_failed", "ann", "account", "ann"),
        ("sign_in_failed", "anonymous", "anonymous", "no-such-name"),
        ("sign_in_failed", "anonymous", "anonymous", "x\ufffd" + "y" * 61 + "…"),
        ("sign_in", "ann", "user", "ann"),
        ("sign_out", "ann", "user", "ann"),
    ]
    assert {row.address for row in entries} == {here}
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


def test_a_limit_that_was_reached_is_recorded_once_a_minute(ann, monkeypatch):
    monkeypatch.setattr(sign_ins.time, "time", lambda: 1e9)
    here = fresh()
    for _ in range(9):
        sign_in(here)
    (entry,) = AuditEntry.objects.filter(action="user.sign_in_limited")
    assert (entry.object_label, entry.address) == ("ann", here)
    assert entry.after["seconds_to_wait"] > 200
    assert sign_ins.record_rest()
    counted = AuditEntry.objects.get(action="user.sign_ins_counted")
    assert counted.after == {
        "counts": {"user.sign_in_limited": 3},
        "addresses": {here: 3},
        "addresses_seen": 1,
    }
    assert not sign_ins.record_rest()


def test_any_number_of_failures_is_few_entries(ann):
    tried = 500
    for number in range(tried):
        sign_ins.record_failure(name=f"name{number}")
    entries = AuditEntry.objects.filter(action="user.sign_in_failed").count()
    assert sign_ins.ENTRIES_PER_MINUTE <= entries <= 2 * sign_ins.ENTRIES_PER_MINUTE  # the minute may end in between
    sign_ins.record_rest()
    counted = AuditEntry.objects.get(action="user.sign_ins_counted")
    assert counted.after["counts"]["user.sign_in_failed"] == tried - entries


def test_an_old_hash_becomes_argon2_at_the_next_sign_in(ann):
    User.objects.filter(pk=ann.pk).update(password=PBKDF2PasswordHasher().encode(PASSWORD, "salt", 1000))
    assert sign_in(fresh(), password=PASSWORD).status_code == 302
    ann.refresh_from_db()
    assert ann.password.startswith("argon2$argon2id$")
    assert ann.check_password(PASSWORD)


@pytest.mark.parametrize(("peer", "kept"), [("192.0.2.9", True), ("203.0.113.5", False)])
def test_only_a_proxy_of_ours_says_what_came_to_it(settings, peer, kept):
    settings.BEHIND_PROXY, settings.TRUSTED_PROXIES = True, ["192.0.2.0/24"]
    headers = [(b"host", b"x"), (b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"1.2.3.4")]
    scope = {"type": "http", "client": (peer, 4711), "headers": headers}
    left = request_context.without_foreign_claims(scope)["headers"]
    assert left == (headers if kept else [*headers[:1], (b"via", b"1.1 unknown")])
    assert scope["headers"] is headers, "the server's own list stays"


def test_an_account_has_so_many_sessions_and_those_that_are_over_are_deleted(ann, settings):
    settings.KEPT_SESSIONS = 2
    address = fresh()
    browsers = [Client(REMOTE_ADDR=address) for _ in range(3)]
    for browser in browsers:
        assert browser.post("/sign-in/", {"username": "ann", "password": PASSWORD}).status_code == 302
    assert [browser.get("/profile/").status_code for browser in browsers] == [302, 200, 200]
    assert Session.objects.count() == 2
    oldest = Session.objects.first()
    Session.objects.filter(pk=oldest.pk).update(expire_date=timezone.now() - dt.timedelta(seconds=1))
    cache.delete("clear_sessions")
    record_rest()
    assert [one.pk for one in Session.objects.all()] not in ([], [oldest.pk])
    assert Session.objects.count() == 1
