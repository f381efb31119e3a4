"""The first account's file: it holds the first password for as long as that opens the door."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from django.core.management.base import CommandError

from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.selectors import user_by_name
from tidesched_web.console.management.commands import prepare
from tidesched_web.embedded import up
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.options import read_options

pytestmark = pytest.mark.django_db
CHANGED = "Admin password: changed since; `manage.py user password admin` sets a new one"


@pytest.fixture
def file(settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.DATA_DIR, settings.EMBEDDED = tmp_path, True
    monkeypatch.delenv("ADMIN_PASSWORD", raising=False)
    return tmp_path / "admin.json"


def said(file: Path) -> str:
    """What a later start says of the password."""
    lines: list[str] = []
    installation = SimpleNamespace(
        output=SimpleNamespace(say=lines.append), options=SimpleNamespace(web_url="http://here")
    )
    up._Installation._announce(cast("up._Installation", installation), file, first=False)
    return lines[-1]


def test_a_start_after_a_change_of_the_password_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prepare._first_account()
    first = json.loads(file.read_text())["password"]
    assert not prepare._first_account()
    assert said(file) == f"Admin password: see {file}"

    user = user_by_name("admin")
    assert user is not None
    accounts.change_password(user=user, old_password=first, new_password="another long password", actor="admin")
    assert prepare._first_account()
    assert json.loads(file.read_text()) == {"username": "admin"}
    assert said(file) == CHANGED
    assert not prepare._first_account()

    monkeypatch.setenv("ADMIN_PASSWORD", "given by the operator")
    assert prepare._first_account()
    assert said(file) == f"Admin password: see {file}"


def test_a_short_password_of_the_environment_is_refused_and_nothing_is_made(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", "nine char")
    with pytest.raises(CommandError, match=r"^ADMIN_PASSWORD has 9 characters: a password has at least 10\."):
        prepare._first_account()
    assert user_by_name("admin") is None
    assert not file.exists()
    with pytest.raises(StartError, match=r"^ADMIN_PASSWORD has 9 characters: a password has at least 10$"):
        read_options()
    monkeypatch.setenv("ADMIN_PASSWORD", "ten chars!")
    assert prepare._first_account()
    read_options()
