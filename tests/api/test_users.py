"""Accounts by REST: invited, changed, given new links, switched off; the last admin stays."""

from urllib.parse import urlsplit

from tests.api.cast import ApiClient, World
from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.models import User
from tidesched_web.audit.models import AuditEntry

PASSWORD = "a long enough password"


def opened(address: str) -> User:
    """Set a password through the link, as its person does."""
    return accounts.use_link(secret=urlsplit(address).path.rstrip("/").rpartition("/")[2], new_password=PASSWORD)


def test_a_person_is_invited_changed_and_switched_off(world: World) -> None:
    admin = world.client("admin")
    body = {"username": "mei", "email": "mei@example.com", "memberships": [{"tenant": "acme", "role": "admin"}]}
    tried = admin.send("users/?dry_run=true", body)
    assert (tried.status_code, tried.json()["link"]["address"]) == (200, "")
    made = admin.send("users/", body, Idempotency_Key="k-1")
    assert made.status_code == 201, made.content
    document = made.json()
    assert made.headers["Location"] == document["url"]
    assert (document["has_password"], document["invited"], document["active"]) == (False, True, True)
    assert [(row["tenant"]["slug"], row["role"]) for row in document["memberships"]] == [("acme", "admin")]
    assert admin.send("users/", body, Idempotency_Key="k-1").json() == document, "the same link again"
    assert document["link"]["kind"] == "invite"
    assert opened(document["link"]["address"]).username == "mei"
    shown = admin.get(document["url"]).json()
    assert (shown["has_password"], shown["invited"], "link" in shown) == (True, False, False)
    again = admin.send(f"users/{document['id']}/link/")
    assert (again.status_code, again.json()["kind"]) == (201, "reset")
    changed = admin.change("PATCH", document["url"], {"platform_role": "auditor", "reason": "reads the log"})
    assert (changed.status_code, changed.json()["platform_role"]) == (200, "auditor")
    off = f"users/{document['id']}/deactivate/"
    assert admin.send(off, {}).json()["errors"][0]["pointer"] == "/reason"
    assert admin.send(off, {"reason": "left"}).json()["active"] is False
    assert admin.send(f"users/{document['id']}/link/").status_code == 409, "switched off"
    assert admin.send(f"users/{document['id']}/activate/", {}).json()["active"] is True
    assert AuditEntry.objects.filter(object_type="user", object_id=document["id"], reason="left").exists()


def test_the_last_admin_who_can_sign_in_stays(world: World) -> None:
    boss = accounts.create_user(username="boss", password=PASSWORD, platform_role="admin", actor="tests")
    client = ApiClient(boss)
    gone = client.send(f"users/{boss.pk}/deactivate/", {"reason": "leaves"})
    assert (gone.status_code, gone.json()["code"]) == (409, "last_admin")
    assert client.change("PATCH", f"users/{boss.pk}/", {"platform_role": ""}).status_code == 409


def test_trying_an_invitation_tells_no_name_that_is_taken_out_of_sight(world: World) -> None:
    """A dry run is free and leaves no trace: a hidden account's name, and one that looks like it, answer as free."""
    owner = world.client("owner")

    def tried(name: str) -> dict[str, object]:
        answer = owner.send("users/?dry_run=true", {"username": name, "memberships": [{"tenant": "acme"}]})
        return {"status": answer.status_code} | {
            key: value for key, value in answer.json().items() if key not in ("id", "url", "memberships", "link")
        }

    free = tried("nobody-has-this")
    assert free["status"] == 200
    for hidden in ("rival", "r1val", "stranger"):
        answer = tried(hidden)
        assert answer["username"] == hidden
        moving = ("username", "display", "created_at", "date_joined")
        assert {key: value for key, value in answer.items() if key not in moving} == {
            key: value for key, value in free.items() if key not in moving
        }
    assert tried("teammate")["status"] == 409, "one that the inviter sees is said to be taken"
    assert not User.objects.filter(username="nobody-has-this").exists()
    real = owner.send("users/", {"username": "rival", "memberships": [{"tenant": "acme"}]})
    assert real.status_code == 409, "an invitation itself is refused"


def test_an_admin_of_a_tenant_invites_into_it_and_sees_nothing_else(world: World) -> None:
    owner, body = world.client("owner"), {"username": "mei", "memberships": [{"tenant": "acme"}]}
    made = owner.send("users/", body)
    assert made.status_code == 201, made.content
    first, url = made.json()["link"]["address"], made.json()["url"]
    second = owner.send(f"{url.partition('/api/v1/')[2]}link/").json()["address"]
    assert first != second
    wrong: list[dict[str, object]] = [{"platform_role": "auditor"}, {"memberships": []}]
    for more in wrong:
        assert owner.send("users/", body | {"username": "li"} | more).status_code == 403
    abroad = owner.send("users/", {"username": "li", "memberships": [{"tenant": "rival"}]})
    assert abroad.json()["errors"][0]["pointer"] == "/memberships/0/tenant"
    mei = User.objects.get(username="mei")
    accounts.set_membership(user=mei, tenant=world.tenants["rival"], role="member", actor="tests")
    assert [row["tenant"]["slug"] for row in owner.get(url).json()["memberships"]] == ["acme"]
    assert world.client("stranger").get(url).status_code == 404
    assert owner.send(f"users/{mei.pk}/link/").status_code == 409, "has rights elsewhere now"
    assert {row["username"] for row in owner.read("users/")["results"]} == {"owner", "teammate", "mei"}
    assert [row["username"] for row in world.client("admin").read("users/", tenant="rival")["results"]] == [
        "rival",
        "mei",
    ]
    assert owner.get("/api/v1/users/?tenant=nowhere").status_code == 400
