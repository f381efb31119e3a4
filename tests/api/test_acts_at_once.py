"""Requests that come at the same time, on connections of their own."""

import threading

import pytest
from django.db import connections

from tests.api.cast import ApiClient, live_tokens
from tidesched_web.accounts import services as accounts


@pytest.mark.django_db(transaction=True)
def test_of_eight_equal_requests_at_once_one_makes_a_token():
    user = accounts.create_user(username="ann", password=None, actor="tests")
    start, statuses, texts = threading.Barrier(8), [], set()

    def send():
        try:
            client = ApiClient(user)
            start.wait()
            response = client.send("tokens/", {"scopes": ["quota:read"]}, Idempotency_Key="k-1")
            statuses.append(response.status_code)
            if response.status_code == 201:
                texts.add(response.json()["token"])
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 409}
    assert len(texts) == live_tokens(user) == 1
