"""Names of accounts that would mislead the readers of the audit log are refused, through every door."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tidesched_web.accounts import services as accounts
from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.errors import DomainError

pytestmark = pytest.mark.django_db
MISLEADING = ["scheduler", "Scheduler", "system", "SYSTEM", "\uff53ystem"]


@pytest.mark.parametrize("name", [*MISLEADING, "ADMIN"])
def test_a_name_that_reads_like_another_is_refused(name):
    accounts.create_user(username="admin", password=None, actor="a test")
    with pytest.raises(DomainError) as refused:
        accounts.create_user(username=name, password=None, actor="a test")
    assert refused.value.code == "misleading_name"


@pytest.mark.parametrize(
    "name", ["\u0438\u0440\u0438\u043d\u0430", "\u738b\u82b3", "wang\u82b3", "jos\u00e9", "ann-2", "o.neil@example"]
)
def test_names_of_one_script_and_of_several_that_differ_are_fine(name):
    assert accounts.create_user(username=name, password=None, actor="a test").username == name


def test_the_api_and_the_command_refuse_them_too():
    admin = accounts.create_user(username="admin", password=None, platform_role="admin", actor="a test")
    client = Client()
    client.force_login(admin)
    body = json.dumps({"username": "Admin", "email": "a@example.com"})
    answer = client.post("/api/v1/users/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "misleading_name")
    with pytest.raises(CommandError, match="part of the system"):
        call_command("user", "create", "scheduler", "--service")


def test_an_entry_says_which_account_acted_whatever_its_name():
    admin = accounts.create_user(username="admin", password=None, platform_role="admin", actor="a test")
    client = Client()
    client.force_login(admin)
    body = json.dumps({"username": "mei", "email": "m@example.com"})
    assert client.post("/api/v1/users/", body, content_type="application/json").status_code == 201
    made = AuditEntry.objects.filter(action="user.create").latest("id")
    assert (made.actor, made.actor_kind, made.actor_id) == ("admin", "user", str(admin.pk))
    said = json.loads(bytes(made.payload))
    assert (said["actor_kind"], said["actor_id"]) == ("user", str(admin.pk))
    first = AuditEntry.objects.earliest("id")
    assert (first.actor, first.actor_kind) == ("a test", "unknown"), "a bare name is never an account"
