"""The demo with people in it: accounts that are offered at its door alone, and what they find to do."""

import json
import re
from html import unescape

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from tests.web.test_demo_setup import demo_server, setup  # noqa: F401 - the fixture
from tidesched_web.accounts.demo_people import FILE, PEOPLE, Offered, keep
from tidesched_web.accounts.models import Membership, PlatformRole, User
from tidesched_web.accounts.selectors import access_of, user_by_name
from tidesched_web.accounts.services import create_user
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes.acts import Act, allowed_actions
from tidesched_web.changes.management.commands import demo_setup
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.tasks import sweep
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Queue, TidePlan

DOOR = reverse("console:sign_in")


def at_home(settings, folder):
    """A demo that its own machine alone can reach."""
    settings.EMBEDDED, settings.DEMO, settings.DATA_DIR, settings.LISTENS_ON = True, True, folder, "127.0.0.1"
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "http://127.0.0.1:8000", ["localhost", "127.0.0.1", "[::1]"]


@pytest.fixture
def demo_people(db, demo_server, settings, tmp_path):  # noqa: F811
    at_home(settings, tmp_path)
    setup(demo_server)
    rows = json.loads((tmp_path / FILE).read_text())
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    return {row["username"]: row["password"] for row in rows}


def door() -> str:
    answer = visitor().get(DOOR)
    assert answer.status_code == 200
    return answer.content.decode()


def visitor() -> Client:
    return Client(SERVER_NAME="localhost")


def offered(page: str) -> dict[str, dict[str, str]]:
    """The buttons beside the form of the page: their words, and what each one's form sends."""
    place = page.partition('aria-label="People of this demo">')[2].partition("</section>")[0]
    assert not re.sub(r"<form\b.*?</form>", "", place, flags=re.DOTALL).strip(), "nothing else"
    return {
        text_of(form): {
            unescape(name): unescape(value)
            for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
        }
        for form in place.split("</form>")[:-1]
    }


def text_of(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def test_the_demo_has_people_who_come_in_by_its_door_and_something_to_do(demo_people, demo_server):  # noqa: F811
    assert set(demo_people) == {person.username for person in PEOPLE}
    buttons = offered(door())
    assert list(buttons) == ["Sign in as quota-admin", "Sign in as ember-admin", "Sign in as auditor"]
    for words, form in buttons.items():
        client = visitor()
        assert client.post(DOOR, form).status_code == 302
        assert f"Sign in as {client.get(reverse('console:profile')).context['user'].username}" == words
    assert Membership.objects.get(user__username="ember-admin").tenant.slug == "ember"

    change = QuotaChange.objects.get(state="waiting")
    assert change.created_by == "ember-admin"
    for name in ("quota-admin", "ember-admin", "auditor"):
        may = Act.APPROVE in allowed_actions(change, access_of(user_by_name(name)))
        assert may == (name == "quota-admin"), name
    assert TidePlan.objects.get().enabled
    queue = QUEUE.path(name="train-platform-notebooks")
    assert demo_server.client().get(queue)["spec"]["weight"] == 3
    assert Queue.objects.get(name="train-platform-notebooks").weight == 1


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"]
)
def test_behind_a_proxy_on_the_same_machine_nobody_is_offered(settings, tmp_path, db, header):
    """A proxy may name 127.0.0.1 as Host to the server behind it, so the name in the request proves nothing."""
    at_home(settings, tmp_path)
    keep([Offered("auditor", "auditor", "a-password-of-the-demo")])
    assert "a-password-of-the-demo" in door()
    forwarded = Client(SERVER_NAME="127.0.0.1", headers={header: "203.0.113.9"}).get(DOOR)
    assert forwarded.status_code == 200
    assert "a-password-of-the-demo" not in forwarded.content.decode()


def test_later_starts_forget_what_changed_and_with_a_real_cluster_the_people_end(
    demo_people,
    demo_server,  # noqa: F811
    tmp_path,
):
    auditor = user_by_name("auditor")
    auditor.set_password("another one that nobody reads")
    auditor.save()
    setup(demo_server)
    kept = {row["username"]: row["password"] for row in json.loads((tmp_path / FILE).read_text())}
    assert kept == {name: demo_people[name] for name in ("quota-admin", "ember-admin")}
    assert User.objects.filter(username__in=demo_people, is_active=True).count() == 3

    create_user(username="root", password=demo_people["auditor"], platform_role=PlatformRole.ADMIN, actor="tests")
    Cluster.objects.create(name="Real", slug="real", api_url="https://10.0.0.1:6443", mode="observe")
    page = door()
    assert not any(password in page for password in demo_people.values())
    setup(demo_server)
    left = User.objects.filter(username__in=demo_people, is_active=True).values_list("username", flat=True)
    assert list(left) == ["auditor"], "whose password is their own by now"
    assert not (tmp_path / FILE).exists()
    assert AuditEntry.objects.filter(action="user.deactivate", reason__contains="real cluster").count() == 2


def test_the_people_end_within_a_minute_of_a_real_cluster_without_another_start(demo_people):
    """A start with DEMO=0 sets no demo up, so it ends no account: the sweep of the changes does."""
    cache.delete("prune_changes")
    sweep()
    assert User.objects.filter(username__in=demo_people, is_active=True).count() == 3
    create_user(username="root", password=demo_people["auditor"], platform_role=PlatformRole.ADMIN, actor="tests")
    Cluster.objects.create(name="Real", slug="real", api_url="https://10.0.0.1:6443", mode="observe")
    cache.delete("prune_changes")
    sweep()
    assert not User.objects.filter(username__in=demo_people, is_active=True).exists()


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"EMBEDDED": False},
        {"DEMO": False},
        {"LISTENS_ON": "0.0.0.0"},
        {"SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https")},
        {"PUBLIC_URL": "http://tide.example.com"},
        {"ALLOWED_HOSTS": ["localhost", "tide.example.com"]},
        {"ALLOWED_HOSTS": ["*"]},
    ],
)
def test_an_installation_that_others_reach_offers_nobody(db, settings, tmp_path, elsewhere):
    at_home(settings, tmp_path)
    row = {"username": "quota-admin", "part": "quota admin", "password": "read-by-everybody"}
    (tmp_path / FILE).write_text(json.dumps([row]))
    assert "read-by-everybody" in door()
    for name, value in elsewhere.items():
        setattr(settings, name, value)
    assert "read-by-everybody" not in door()


def test_a_start_that_is_no_demo_of_its_own_makes_no_people(db, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(demo_setup, "_WAIT_SECONDS", 0.0)
    settings.EMBEDDED, settings.DATA_DIR = False, tmp_path
    token = tmp_path / "token"
    token.write_text("secret")
    with pytest.raises(CommandError):
        call_command("demo_setup", url="http://127.0.0.1:9", token_file=str(token))
    assert not User.objects.filter(username__in=[person.username for person in PEOPLE]).exists()
    assert not (tmp_path / FILE).exists()
