"""The stage of the pipeline's tests, and who asks what it tells."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from tests.web.metrics.scrape import token
from tests.web.pipeline.conftest import server, stage

__all__ = ["server", "stage"]


@pytest.fixture
def scraper(transactional_db: None) -> Iterator[Client]:
    return Client(headers={"authorization": f"Bearer {token('root', platform_role='admin')}"})
