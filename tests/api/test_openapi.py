"""The OpenAPI document is committed, complete and without warnings; its page loads nothing from elsewhere."""

import io
import re
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.db import transaction
from jsonschema import Draft202012Validator

from tests.api.cast import ApiClient
from tests.api.test_authority import MATRIX, address
from tidesched_web.accounts.models import Scope

COMMITTED = Path(__file__).parents[2] / "openapi.yaml"
REGENERATE = "python manage.py spectacular --fail-on-warn --validate --file openapi.yaml"


@pytest.fixture(scope="module")
def document():
    return yaml.safe_load(COMMITTED.read_text(encoding="utf-8"))


def test_the_committed_document_is_the_generated_one():
    out = io.StringIO()
    call_command("spectacular", "--fail-on-warn", "--validate", stdout=out)
    assert out.getvalue().strip() == COMMITTED.read_text(encoding="utf-8").strip(), f"run: {REGENERATE}"


def test_it_is_openapi_3_1_and_every_operation_may_answer_with_a_problem(document):
    assert document["openapi"].startswith("3.1")
    for path in document["paths"].values():
        for operation in path.values():
            refusal = operation["responses"]["default"]["$ref"].rpartition("/")[2]
            assert "application/problem+json" in document["components"]["responses"][refusal]["content"]


def schema_of(document, url):
    """The response schema of the GET at ``url``, found by matching the templates of the paths."""
    path = url.partition("?")[0].replace("http://testserver", "")
    for template, operations in sorted(document["paths"].items(), key=lambda item: item[0].count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", template), path):
            return operations["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    raise AssertionError(f"{path} is not in the document")


@pytest.mark.parametrize(
    "name", sorted(name for name, method in MATRIX if method == "get" and not name.startswith("schema"))
)
def test_what_is_answered_is_what_the_document_says(world, document, name):
    """Every read, as an admin and as a member (who gets nulls where a row is partly out of sight)."""
    for caller in ("admin", "owner", "rival"):
        url = address(world, name)
        response = world.client(caller).get(url)
        if response.status_code in (403, 404) and caller != "admin":
            continue
        if not response.headers["Content-Type"].startswith("application/json"):
            assert response.status_code == 200
            continue
        root = schema_of(document, url) | {"components": document["components"]}
        Draft202012Validator(root).validate(response.json())


def scopes_at(document, url, method):
    """Any one of these lets a token use the operation at ``url``."""
    path = url.partition("?")[0].replace("http://testserver", "")
    for template, operations in sorted(document["paths"].items(), key=lambda item: item[0].count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", template), path):
            return {scope for way in operations[method]["security"] for scope in way.get("token", ())}
    raise AssertionError(f"{path} is not in the document")


OPEN_TO_ALL = {"index", "schema", "schema-docs"}
RESOURCES = sorted({name.removesuffix("-list") for name, _ in MATRIX if name.endswith("-list")} | {"usage"})


@pytest.mark.parametrize("resource", RESOURCES)
def test_each_scope_that_is_named_is_enough_and_all_others_together_are_not(world, document, resource):
    """Through tokens of a platform admin, so that no role stands in the way."""
    for name, method in sorted(MATRIX):
        if name in OPEN_TO_ALL or not (name == resource or name.startswith(f"{resource}-")):
            continue
        named = scopes_at(document, address(world, name), method)
        others = {str(scope) for scope in Scope} - named - {"admin"}
        for scopes, wanted in [*(((scope,), False) for scope in named), (tuple(others), True)]:
            with transaction.atomic():
                client = ApiClient(token=world.token("admin", *scopes))
                answer = client.generic(method.upper(), address(world, name), "{}", "application/json")
                refused = answer.status_code == 403 and answer.json()["code"] == "missing_scope"
                transaction.set_rollback(True)
            assert refused == wanted, (name, method, scopes, answer.status_code)


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
    assert yaml.safe_load(served.content)["info"]["title"] == "TideSched"
