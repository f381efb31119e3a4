"""The comparison of two REST documents finds what is planted, and nothing else."""

import copy
from pathlib import Path

import pytest
import yaml

from tests.api import compare_documents

COLOR = {"type": "string", "enum": ["red", "green"]}
DOCUMENT = {
    "paths": {
        "/things/": {
            "get": {
                "parameters": [{"name": "color", "in": "query", "schema": {"$ref": "#/components/schemas/Color"}}],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                    "404": {"description": "It is not there."},
                },
            },
            "delete": {"responses": {"204": {"description": "It is gone."}}},
        }
    },
    "components": {
        "schemas": {
            "Color": COLOR,
            "Thing": {
                "type": "object",
                "required": ["id", "color"],
                "properties": {"id": {"type": "integer"}, "color": {"$ref": "#/components/schemas/Color"}},
            },
        }
    },
}


def _other_words(document):
    """The same for those who call: another name, another order, another description."""
    shapes = document["components"]["schemas"]
    shapes["Paint"] = COLOR | {"enum": ["green", "red"], "description": "Of a thing."}
    del shapes["Color"]
    shapes["Thing"] |= {"required": ["color", "id"], "example": {"id": 1}}
    shapes["Thing"]["properties"]["color"] = {"$ref": "#/components/schemas/Paint"}
    parameter = document["paths"]["/things/"]["get"]["parameters"][0]
    parameter |= {"required": False, "schema": {"allOf": [{"$ref": "#/components/schemas/Paint"}]}}


def _no_delete(document):
    del document["paths"]["/things/"]["delete"]


def _blue(document):
    document["components"]["schemas"]["Color"]["enum"] = ["red", "blue"]


def _color_not_required(document):
    document["components"]["schemas"]["Thing"]["required"].remove("color")


def _no_404(document):
    del document["paths"]["/things/"]["get"]["responses"]["404"]


BODY, COLOR_OF = "GET /things/ 200 application/json ", "GET /things/ parameter query:color "


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (_other_words, []),
        (_no_delete, ["- DELETE /things/: operation"]),
        (
            _blue,
            [
                f"{sign} {place} enum '{color}': there"
                for place in (f"{BODY}/color", COLOR_OF)
                for sign, color in (("+", "blue"), ("-", "green"))
            ],
        ),
        (_color_not_required, [f"- {BODY} required color: there"]),
        (_no_404, ["- GET /things/ 404: there"]),
    ],
)
def test_it_finds_what_is_planted(tmp_path, capsys, edit, found):
    other = copy.deepcopy(DOCUMENT)
    edit(other)
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(yaml.safe_dump(DOCUMENT))
    new.write_text(yaml.safe_dump(other))
    assert compare_documents.main([str(old), str(new)]) == (1 if found else 0)
    assert capsys.readouterr().out.splitlines() == (found or ["no difference"])


def test_the_committed_document_equals_itself():
    committed = Path(__file__).parents[2] / "openapi.yaml"
    assert compare_documents.differences(committed, committed) == []
