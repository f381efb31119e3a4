"""Is there anything to prepare? Asked of real files and a real schema."""

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from tidesched_web.embedded import prepared


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own."""
    monkeypatch.setattr(prepared, "BASE_DIR", tmp_path)
    monkeypatch.delenv("STATIC_ROOT", raising=False)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "base.txt").write_text("")
    (tmp_path / "static" / "css").mkdir(parents=True)
    (tmp_path / "static" / "css" / "page.css").write_text("a {}")
    messages = tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES"
    messages.mkdir(parents=True)
    (messages / "django.po").write_text("")
    return tmp_path


def test_static_files_are_told_by_their_content(sources: Path) -> None:
    assert not prepared.static_is_current()
    prepared.static_root().mkdir()
    prepared.static_stamp().write_text(prepared.static_fingerprint())
    assert prepared.static_is_current()

    page = sources / "static" / "css" / "page.css"
    os.utime(page, (1, 1))
    assert prepared.static_is_current()
    page.write_text("b {}")
    assert not prepared.static_is_current()


def test_a_catalogue_is_stale_when_its_source_is_newer(sources: Path) -> None:
    source = sources / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
    assert prepared.stale_catalogues() == [source]
    source.with_suffix(".mo").write_bytes(b"")
    assert prepared.stale_catalogues() == []
    os.utime(source, (4e9, 4e9))
    assert prepared.stale_catalogues() == [source]


@pytest.mark.django_db(transaction=True)
def test_the_schema_is_current_when_exactly_ours_is_applied() -> None:
    url = settings.DATABASE_URL.rpartition("/")[0] + "/" + connection.settings_dict["NAME"]
    assert prepared.schema_is_current(url)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET name = 'x' || name WHERE app = 'quota'")
    try:
        assert not prepared.schema_is_current(url)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET name = substr(name, 2) WHERE app = 'quota'")
    assert prepared.schema_is_current(url)


def test_no_database_is_no_schema() -> None:
    assert not prepared.schema_is_current("postgresql://nobody@%2Fnowhere/none")


def test_a_fresh_database_has_no_schema() -> None:
    assert not prepared.schema_is_current(settings.DATABASE_URL.rpartition("/")[0] + "/postgres")
