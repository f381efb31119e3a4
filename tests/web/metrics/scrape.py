"""What `/metrics` tells, read by the library's own parser."""

from __future__ import annotations

from typing import Any

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tidesched_web.accounts import services as accounts

Labels = tuple[tuple[str, str], ...]


def token(username: str, *, scopes: tuple[str, ...] = ("admin",), platform_role: str = "", **of: Any) -> str:
    user = accounts.create_user(username=username, password=None, actor="tests", platform_role=platform_role)
    _row, plain = accounts.create_token(user=user, scopes=list(scopes), actor="tests", **of)
    return plain


def scraped(client: Client) -> dict[str, dict[Labels, float]]:
    """Name of a sample → its labels → its figure."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.content
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name}{sample.labels} is told twice"
            found[sample.name][labels] = sample.value
    return found


def labels(**values: str) -> Labels:
    return tuple(sorted(values.items()))
