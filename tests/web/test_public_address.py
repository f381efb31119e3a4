"""`PUBLIC_URL` rules each link, whatever host a proxy hands on; an address below a path is refused at the start."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client

from tests.api import cast
from tests.cluster.servers import ROOT
from tidesched_web import env

PUBLIC = "https://tide.example.com"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("https://tide.example/gpu", "give it a host name of its own"),
        ("tide.example", "expected such as https://"),
        ("ftp://tide.example", "expected such as https://"),
        ("https://tide.example?x=1", "expected such as https://"),
        ("https://tide.example#x", "expected such as https://"),
        ("https://ann:secret@tide.example", "expected such as https://"),
    ],
)
def test_an_address_that_is_no_root_of_a_host_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.setenv("PUBLIC_URL", value)
    with pytest.raises(ValueError, match="PUBLIC_URL") as refused:
        env.origin("PUBLIC_URL")
    assert said in str(refused.value)


def test_the_start_says_so_in_one_sentence() -> None:
    environment = os.environ | {
        "PUBLIC_URL": "https://tide.example/gpu",
        "DJANGO_SETTINGS_MODULE": "tidesched_web.settings",
    }
    started = subprocess.run(
        [sys.executable, "-m", "tidesched_web.embedded", "up"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
    )
    said = (started.stdout + started.stderr).decode()
    assert started.returncode
    assert "below no path" in said
    assert "Traceback" not in said


def test_links_are_of_the_public_address(db: Any, settings: Any) -> None:
    settings.GIVEN_URL, settings.PUBLIC_URL, settings.ALLOWED_HOSTS = PUBLIC, PUBLIC, ["tidesched-web"]
    settings.CSRF_TRUSTED_ORIGINS = [PUBLIC]
    client = cast.build().client("admin")
    page = client.get("/api/v1/queues/?limit=1", HTTP_HOST="tidesched-web:8000").json()
    assert page["next"].startswith(f"{PUBLIC}/api/v1/queues/?limit=1&cursor=")
    assert page["results"][0]["url"].startswith(f"{PUBLIC}/api/v1/queues/")


def test_a_form_behind_a_proxy_that_hands_on_its_own_host_is_taken(db: Any, settings: Any) -> None:
    settings.GIVEN_URL, settings.ALLOWED_HOSTS, settings.CSRF_TRUSTED_ORIGINS = PUBLIC, ["tidesched-web"], [PUBLIC]
    world = cast.build()
    client = Client(enforce_csrf_checks=True, headers={"host": "tidesched-web:8000", "origin": PUBLIC})
    client.force_login(world.users["admin"])
    place = f"/tenants/{world.tenants['acme'].slug}/invite/"
    client.get(place)
    given = {"username": "nina", "role": "member", "csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    assert f"{PUBLIC}/invite/" in client.post(place, given).content.decode()
