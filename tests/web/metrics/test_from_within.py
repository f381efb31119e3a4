"""A Prometheus in the cluster asks a pod by its address and without https, whatever the public address is."""

import pytest
from django.test import Client


@pytest.fixture
def in_a_pod(settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["tidesched.example.com", "10.1.2.3", "[fd00::3]"]


@pytest.mark.parametrize("host", ["10.1.2.3:8000", "[fd00::3]:8000"])
def test_the_metrics_of_a_pod_are_answered_where_pages_are_sent_to_https(in_a_pod, scraper: Client, host: str) -> None:
    assert scraper.get("/", headers={"host": host}).status_code == 301
    answer = scraper.get("/metrics", headers={"host": host})
    assert answer.status_code == 200, answer.headers
