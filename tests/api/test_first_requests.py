"""The requests of the introduction, sent as they are: each is answered in the shape that the document says."""

import re
import shlex
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from tests.api.cast import ApiClient
from tests.api.story import Story
from tidesched_web.api.document.served import document
from tidesched_web.api.schema import INTRODUCTION

COMMANDS = re.findall(r"^curl (.+)$", INTRODUCTION.replace("\\\n", " "), re.MULTILINE)


def sent(client, command):
    """(method, path, answer) of a command line of curl."""
    method, body, headers, address = "GET", "", {}, ""
    words = iter(shlex.split(command))
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-d":
            body = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        else:
            address = word
    assert headers.pop("Authorization") == "Bearer $TOKEN"
    where = urlsplit(address.removeprefix("$SITE"))
    kind = headers.pop("Content-Type", "application/json")
    query = f"?{where.query}" if where.query else ""
    return method.lower(), where.path, client.generic(method, where.path + query, body, kind, headers=headers)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_first_request_works_as_it_stands(db, command):
    story = Story()
    method, path, answer = sent(ApiClient(token=story.world.token("owner", "quota:read", "quota:write")), command)
    assert answer.status_code in (200, 201), answer.content
    said = document()["paths"][path][method]["responses"][str(answer.status_code)]["content"]["application/json"]
    Draft202012Validator(said["schema"] | {"components": document()["components"]}).validate(answer.json())
    assert answer.json(), "it finds something"


def test_there_are_first_requests_to_read_and_to_write():
    assert len(COMMANDS) == 6
    assert sum("-X POST" in command for command in COMMANDS) == 2


def test_the_page_lists_its_contents(db):
    page = ApiClient().get("/api/v1/schema/docs/").content.decode()
    assert re.findall(r'href="#operations-tag-([a-z-]+)"', page) == [group["name"] for group in document()["tags"]]
