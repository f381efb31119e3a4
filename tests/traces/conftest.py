"""The traces are in English, and limits on requests do not end them."""

import pytest
from django.utils import translation

from tidesched_web.changes import adoption
from tidesched_web.common import alive
from tidesched_web.console.build import compile_catalogues

compile_catalogues()


@pytest.fixture(autouse=True)
def _plain(settings, monkeypatch):
    settings.API_REQUESTS_PER_MINUTE = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 0
    monkeypatch.setattr(adoption, "unmanaged", lambda cluster, known: [])  # the cluster does not answer
    # What background processes of other tests have said, and which servers these are.
    monkeypatch.setattr(alive, "STARTED", -1e9)
    monkeypatch.setattr(alive, "processes", list)
    monkeypatch.setattr(alive, "waiting_messages", lambda: 0)
    monkeypatch.setattr(alive, "store", lambda: ("Valkey", "1"))
    yield
    translation.deactivate()
