"""Sign-in, sign-out, password, profile, language and time zone."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.passwords import PASSWORD
from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> User:
    return story.people()[0]


def test_sign_in_and_out(admin) -> None:
    client = Client()
    page = client.get("/sign-in/")
    assert page.status_code == 200
    wrong = client.post("/sign-in/", {"username": "admin", "password": "wrong"})
    assert "The user name or the password is wrong" in wrong.content.decode()
    right = client.post("/sign-in/", {"username": "admin", "password": PASSWORD, "next": "/help/"})
    assert right["Location"] == "/help/"
    assert client.get("/help/").status_code == 200
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/")["Location"] == "/sign-in/"
    assert client.get("/help/").status_code == 302


def test_sign_in_goes_nowhere_else(admin) -> None:
    answer = Client().post("/sign-in/", {"username": "admin", "password": PASSWORD, "next": "https://evil.example/"})
    assert answer["Location"] == "/"


def test_change_password(admin) -> None:
    client, other = client_of(admin), client_of(admin)
    new = "an even longer password"

    def send(old: str, first: str, second: str) -> object:
        return client.post("/password/", {"old_password": old, "new_password": first, "repeated": second})

    assert "not the present password" in send("wrong", new, new).content.decode()
    assert "not the same" in send(PASSWORD, new, "different").content.decode()
    assert send(PASSWORD, "12345", "12345").status_code == 400
    assert send(PASSWORD, new, new).status_code == 302
    assert client.get("/help/").status_code == 200, "this session goes on"
    assert other.get("/help/").status_code == 302, "the others end"


def test_a_first_password_must_be_changed(admin) -> None:
    User.objects.filter(pk=admin.pk).update(must_change_password=True)
    client = client_of(admin)
    assert client.get("/help/")["Location"] == "/password/"
    assert "Choose a password of your own first" in client.get("/password/").content.decode()
    new = "an even longer password"
    client.post("/password/", {"old_password": PASSWORD, "new_password": new, "repeated": new})
    assert client.get("/help/").status_code == 200


def test_profile_language_and_zone(admin) -> None:
    story.empty_cluster()
    client = client_of(admin)
    assert client.post("/profile/", {"language": "xx", "time_zone": ""}).status_code == 400
    assert client.post("/profile/", {"language": "zh-hans", "time_zone": "Asia/Shanghai"}).status_code == 302
    page = client.get("/clusters/")
    assert '<html lang="zh-hans"' in page.content.decode()
    assert page["Content-Language"] == "zh-hans"
    assert "个人资料已保存" in page.content.decode()
    assert 'data-ago="%s前"' in page.content.decode()
    client.post("/profile/", {"language": "", "time_zone": ""})
    assert '<html lang="en"' in client.get("/clusters/").content.decode()


def test_the_browser_chooses_until_the_profile_does(admin) -> None:
    chinese = Client(headers={"Accept-Language": "zh-CN,zh;q=0.9"}).get("/sign-in/").content.decode()
    assert "登录" in chinese
    client = Client()
    assert client.get("/sign-in/?language=zh-hans").status_code == 302
    assert "登录" in client.get("/sign-in/").content.decode()


@pytest.mark.parametrize(
    ("zone", "hour"), [("Asia/Shanghai", "04:15"), ("UTC", "20:15"), ("Not/AZone", "20:15"), ("../../etc", "20:15")]
)
def test_times_are_in_the_readers_zone(admin, zone, hour) -> None:
    import datetime as dt

    from django.utils import timezone

    story.empty_cluster(
        clock_rate=1e-9, clock_anchor=dt.datetime(2026, 3, 4, 20, 15, tzinfo=dt.UTC), clock_wall_anchor=timezone.now()
    )
    client = client_of(admin)
    client.cookies["tz"] = zone.replace("/", "%2F")
    assert hour in client.get("/clusters/").content.decode()


def test_errors_have_pages(admin) -> None:
    answer = client_of(admin).get("/nothing/")
    assert answer.status_code == 404
    assert "Nothing is here" in answer.content.decode()
    forged = Client(enforce_csrf_checks=True).post("/sign-in/", {"username": "admin"})
    assert forged.status_code == 403
    assert "This form is too old" in forged.content.decode()


def test_a_bug_has_a_page_too(admin, monkeypatch) -> None:
    def broken(_access: object) -> list[object]:
        raise RuntimeError

    monkeypatch.setattr("tidesched_web.console.page.clusters_of_frame", broken)
    client = client_of(admin)
    client.raise_request_exception = False
    answer = client.get("/help/")
    assert answer.status_code == 500
    assert "Something went wrong in TideSched" in answer.content.decode()
    assert answer["X-Request-ID"]


def test_the_present_password_is_asked_for_in_the_readers_language(admin) -> None:
    User.objects.filter(pk=admin.pk).update(language="zh-hans")
    new = "an even longer password"
    answer = client_of(admin).post("/password/", {"old_password": "wrong", "new_password": new, "repeated": new})
    assert "当前密码不正确" in answer.content.decode()
