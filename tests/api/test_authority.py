"""What a token may: never more than its user, and of one tenant only where it is limited to one.

Who may open and do what is in `tests/matrix`.
"""


def test_a_token_for_one_tenant_sees_nothing_else_even_of_an_admin(world):
    from tests.api.cast import ApiClient

    client = ApiClient(token=world.token("admin", "admin", tenant="rival"))
    assert [row["slug"] for row in client.read("tenants/")["results"]] == ["rival"]
    assert [row["slug"] for row in client.read("clusters/")["results"]] == ["east"]
    assert client.get(f"/api/v1/queues/{world.queues['acme-online'].pk}/").status_code == 404
    assert client.send(f"clusters/{world.clusters['east'].pk}/pause/", {"reason": "drill"}).status_code == 403
    made = client.send("tokens/", {"scopes": ["admin"]})
    assert made.json()["tenant"]["slug"] == "rival"  # a limited token makes only tokens of its own limit
    assert client.send("tokens/", {"scopes": ["admin"], "tenant": "acme"}).status_code == 400


def test_a_token_never_makes_one_that_may_more(world):
    from tests.api.cast import ApiClient

    client = ApiClient(token=world.token("teammate", "admin"))
    made = client.send("tokens/", {"scopes": ["admin"]}).json()["token"]
    pause = f"clusters/{world.clusters['east'].pk}/pause/"
    assert ApiClient(token=made).send(pause, {"reason": "x"}).status_code == 403
