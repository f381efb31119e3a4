"""The OpenAPI document is committed, complete and without warnings; its page loads nothing from elsewhere."""

import gzip
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from drf_spectacular.renderers import OpenApiJsonRenderer
from jsonschema import Draft202012Validator

from tests.waiting import until
from tidesched_web.api.document import served

COMMITTED = Path(__file__).parents[2] / "openapi.yaml"


@pytest.fixture(scope="module")
def document():
    return yaml.load(COMMITTED.read_text(encoding="utf-8"), yaml.CSafeLoader)


def test_it_is_openapi_3_1_and_every_operation_may_answer_with_a_problem(document):
    assert document["openapi"].startswith("3.1")
    for path in document["paths"].values():
        for operation in path.values():
            refusal = operation["responses"]["default"]["$ref"].rpartition("/")[2]
            assert "application/problem+json" in document["components"]["responses"][refusal]["content"]


def open_maps(document, schema, seen):
    """The maps of a schema that take any name, with those of what it refers to."""
    if isinstance(schema, list):
        for inner in schema:
            yield from open_maps(document, inner, seen)
    elif isinstance(schema, dict):
        name = schema.get("$ref", "").rpartition("/")[2]
        if name and name not in seen:
            seen.add(name)
            yield from open_maps(document, document["components"]["schemas"][name], seen)
        if isinstance(schema.get("additionalProperties"), dict):
            yield schema
        for inner in schema.values():
            yield from open_maps(document, inner, seen)


def test_a_map_of_a_request_says_which_names_its_members_can_have(document):
    seen = set()
    bodies = [
        one["requestBody"] for path in document["paths"].values() for one in path.values() if "requestBody" in one
    ]
    found = list(open_maps(document, bodies, seen))
    assert len(found) >= 6
    assert [shape for shape in found if "propertyNames" not in shape] == []


@pytest.mark.parametrize(
    ("path", "member", "right", "wrong"),
    [
        ("clusters", "api_url", "https://east.example:6443", "https://east\0.example"),
        ("drift", "ids", [1, 2], [2**63]),
        ("users", "username", "mei.li@acme", "mei li"),
    ],
)
def test_what_the_form_of_a_value_does_not_allow_is_against_the_document(world, document, path, member, right, wrong):
    body = document["paths"][f"/api/v1/{path}/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    form = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"][member]
    assert [Draft202012Validator(form).is_valid(value) for value in (right, wrong)] == [True, False]
    refused = world.client("admin").send(f"{path}/", {member: wrong})
    assert refused.status_code == 400
    assert any(error["pointer"].startswith(f"/{member}") for error in refused.json()["errors"])


def test_the_page_needs_no_other_host_and_no_inline_script(world):
    response = world.client("anonymous").get("/api/v1/schema/docs/")
    page = response.content.decode()
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert not re.search(r"<script>|<style>|\son\w+=", page)
    assert "script-src 'self'" in response.headers["Content-Security-Policy"]
    script = re.findall(r'src="([^"]+script[^"]*)"', page)[-1]
    assert "/api/v1/schema/" in world.client("anonymous").get(script).content.decode()


def test_the_document_is_served_to_everybody(world):
    served = world.client("anonymous").get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi"})
    assert yaml.load(served.content, yaml.CSafeLoader)["info"]["title"] == "TideSched"


def test_the_document_is_made_once_and_had_again_for_nothing(world, monkeypatch):
    """Whatever its form, its packing and its reader's language: the generator is called once."""
    made = []
    generate = served.SchemaGenerator.get_schema
    monkeypatch.setattr(
        served.SchemaGenerator, "get_schema", lambda *given, **named: made.append(1) or generate(*given, **named)
    )
    served.forget()
    client = world.client("anonymous")
    answers = [
        client.get(f"/api/v1/schema/?format={form}", headers={"Accept-Encoding": packing, "Accept-Language": language})
        for form in ("yaml", "json")
        for packing in ("", "gzip", "br, gzip", "br")
        for language in ("zh-hans", "en")
    ]
    assert len(made) == 1
    assert {answer.headers.get("Content-Encoding", "") for answer in answers} == {"", "gzip"}
    plain = {len(answer.content) for answer in answers if "Content-Encoding" not in answer.headers}
    packed = {len(answer.content) for answer in answers if "Content-Encoding" in answer.headers}
    assert max(packed) * 5 < min(plain)
    assert json.loads(gzip.decompress(answers[10].content)) == json.loads(answers[8].content)
    assert answers[8].json()["info"]["description"].startswith("Quota, gangs and reclaims")
    etags = {answer.headers["ETag"] for answer in answers}
    assert len(etags) == 2, "one for each form"
    for form, answer in (("yaml", answers[0]), ("json", answers[8])):
        for had in (answer.headers["ETag"], f'"other", {answer.headers["ETag"]}'):
            again = client.get(f"/api/v1/schema/?format={form}", headers={"If-None-Match": had})
            assert (again.status_code, again.content) == (304, b"")
    assert client.get("/api/v1/schema/?format=json", headers={"If-None-Match": '"other"'}).status_code == 200
    for wrong in ("lang=de", "format=xml"):
        assert client.get(f"/api/v1/schema/?{wrong}").status_code == 400
    assert len(made) == 1


def test_requests_that_come_together_make_the_document_once(monkeypatch):
    made, asked = [], []

    def make(*_given, **_named):
        made.append(1)
        until(lambda: len(asked) == 8)
        return {"a": 1}

    def ask(number):
        asked.append(number)
        return served.served(OpenApiJsonRenderer())[0]

    monkeypatch.setattr(served.SchemaGenerator, "get_schema", make)
    served.forget()
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(8)))
    finally:
        served.forget()
    assert len(made) == 1
    assert {bytes(body) for body in found} == {found[0]}
