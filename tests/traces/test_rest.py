"""The answers of the REST API to an admin: each read, each good write, and each write that is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from django.core.cache import cache
from django.db import transaction

from tests.api.story import Story
from tests.matrix.bodies import body_of
from tests.matrix.expectations import ELSEWHERE
from tests.matrix.stage import address, routes
from tests.traces import expected

# The document is a file of its own; the file of a segment is full of hashes.
ASIDE = {*ELSEWHERE, "api:schema", "api:schema-docs", "api:audit-segment-file"}
ROUTES = [route for route in routes() if route.name.startswith("api:") and route.name not in ASIDE]
# Headers that say something of the answer.
HEADERS = ("Location", "Link", "Retry-After", "Allow")
REFUSED = yaml.load((Path(__file__).parent / "refusals.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@pytest.fixture(scope="module")
def story(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), expected.standing_world(Story) as found:
        yield found


def asked(story: Story, caller: str, method: str, path: str, **how: Any) -> str:
    """The request and its answer in lines; what it wrote is taken back."""
    cache.clear()
    client = story.world.client(caller)
    with transaction.atomic():
        answer = client.generic(method.upper(), path, **how)
        content = expected.content_of(answer)
        transaction.set_rollback(True)
    heading = f"=== {method.upper()} {path} {how.get('data', b'').decode()}".strip()
    headers = [f"{name}: {answer.headers[name]}" for name in HEADERS if name in answer.headers]
    return "\n".join([heading, f"{answer.status_code} {expected.kind_of(answer)}", *headers, content, ""])


def test_answers(story, db, subtests):
    found: dict[str, list[str]] = {}
    for route in ROUTES:
        resource = route.pattern.removeprefix("api/v1/").partition("/")[0] or "index"
        path, lines = address(story, route), found.setdefault(resource, [])
        for method in route.methods:
            how = body_of(story, route.name, method) if method != "get" else {}
            lines.append(asked(story, "admin", method, path, **how))
            if how:
                lines.append(asked(story, "admin", method, path, **how | {"data": b'{"nonsense":1}'}))
    for name, lines in found.items():
        with subtests.test(name):
            expected.check(f"rest/{name}", "\n".join(lines))
    expected.check_names("rest", found)


def test_refusals(story, db):
    lines = []
    for one in REFUSED:
        (who,) = one.keys() - {"why", "sends", "headers"}
        how = {"headers": one.get("headers", {"If-Match": "*"}), "content_type": "application/json"}
        if "sends" in one:
            how["data"] = orjson.dumps(one["sends"])
        method, path = one[who].format(**story.keys).split(" ")
        lines.append(f"# {one['why']}")
        lines.append(asked(story, who, method, f"/api/v1/{path}", **how))
    expected.check("refusals", "\n".join(lines))
