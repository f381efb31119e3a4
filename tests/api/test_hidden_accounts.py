"""What an admin of one tenant can find out about accounts of others: nothing; and what a token can make."""

import datetime as dt

import pytest
from django.utils import timezone

from tests.api.cast import ApiClient, World
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import ApiToken, Membership, User


def without(answer, *words: str) -> tuple[int, str]:
    """An answer without what differs between any two requests."""
    text = answer.content.decode()
    for word in (answer.json()["request_id"], *words):  # the id first: any number may be in it
        text = text.replace(word, "…")
    return answer.status_code, text


@pytest.mark.parametrize("dry", ["?dry_run=true", ""])
def test_no_account_out_of_sight_is_named_by_its_number(world: World, dry: str) -> None:
    stranger = world.client("stranger")
    hidden, absent = world.users["owner"].pk, 987654321
    body = {"tenant": "far", "role": "member"}
    told = without(stranger.send(f"members/{dry}", body | {"user": hidden}), str(hidden))
    assert told == without(stranger.send(f"members/{dry}", body | {"user": absent}), str(absent))
    assert told[0] == 400
    assert not Membership.objects.filter(user=hidden, tenant=world.tenants["far"]).exists()


def test_a_dry_run_says_the_same_of_a_hidden_name_and_of_none(world: World) -> None:
    stranger = world.client("stranger")
    told = without(stranger.send("members/?dry_run=true", {"tenant": "far", "user": "owner"}), "owner")
    assert told == without(stranger.send("members/?dry_run=true", {"tenant": "far", "user": "nosuch"}), "nosuch")
    assert told[0] == 400
    assert stranger.send("members/", {"tenant": "far", "user": "owner"}).status_code == 201, "the exact name"
    assert world.client("admin").send("members/?dry_run=1", {"tenant": "rival", "user": "owner"}).status_code == 200


def test_mail_and_last_sign_in_belong_to_those_who_invited(world: World) -> None:
    User.objects.filter(username="owner").update(email="o@example.com", last_login=timezone.now())
    stranger = world.client("stranger")
    stranger.send("members/", {"tenant": "far", "user": "owner"})
    (row,) = stranger.read("users/", username="owner")["results"]
    assert (row["email"], row["last_sign_in_at"]) == ("", None)
    assert stranger.read("users/", email="o@example.com")["results"] == []
    (whole,) = world.client("admin").read("users/", email="o@example.com")["results"]
    assert whole["last_sign_in_at"]
    assert world.client("owner").read("users/", username="owner")["results"][0]["email"] == "o@example.com"
    made = stranger.send("users/", {"username": "mei", "email": "m@example.com", "memberships": [{"tenant": "far"}]})
    assert made.json()["email"] == "m@example.com"


def test_users_are_not_filtered_by_memberships_out_of_sight(world: World) -> None:
    stranger, rival = world.client("stranger"), world.tenants["rival"]
    accounts.set_membership(user=world.users["rival"], tenant=world.tenants["far"], role="member", actor="tests")
    assert {row["username"] for row in stranger.read("users/", tenant="far")["results"]} == {"stranger", "rival"}
    hidden = without(stranger.get("/api/v1/users/?tenant=rival"), "rival")
    assert hidden == without(stranger.get("/api/v1/users/?tenant=absent"), "absent")
    assert stranger.read("users/", tenant=rival.pk)["results"] == []
    assert [row["username"] for row in world.client("admin").read("users/", tenant="rival")["results"]] == ["rival"]


def test_a_token_makes_none_that_outlives_it_or_may_more(world: World) -> None:
    end = timezone.now() + dt.timedelta(minutes=1)
    _token, plain = accounts.create_token(
        user=world.users["admin"], scopes=["admin"], expires_at=end, tenant=world.tenants["acme"], actor="tests"
    )
    client = ApiClient(token=plain)
    longer = client.send("tokens/", {"scopes": ["admin"], "expires": "90d"})
    assert (longer.status_code, longer.json()["errors"][0]["pointer"]) == (400, "/expires")
    assert client.send("tokens/", {"scopes": ["admin"]}).status_code == 201
    assert client.send("tokens/", {"scopes": ["quota:read"], "expires": "30m"}).status_code == 400
    made = ApiToken.objects.order_by("-id").first()
    assert (made.expires_at, made.tenant) == (end, world.tenants["acme"]), "it ends with the one that made it"
    free = ApiClient(world.users["admin"]).send("tokens/", {"scopes": ["admin"], "expires": "90d"})
    assert free.status_code == 201, "a session has no end that binds"
