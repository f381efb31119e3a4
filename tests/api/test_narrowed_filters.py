"""Of a list's filters only those are built that the request names, and they do what all of them together do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from django.http import QueryDict

from tidesched_web.api.filters import StrictBackend
from tidesched_web.api.v1.workloads import GangFilters
from tidesched_web.workloads.models import Gang

QUERIES = (
    "", "state=running", "name=web&namespace=acme", "cluster=east", "cluster=west&state=waiting", "queue=acme-train",
    "waiting=true", "waiting=false", "gone=false", "gone=true", "reason=WaitingForCards",
    "phase=Running&service_type=training", "name=",
)  # fmt: skip


def narrowed(query):
    request = SimpleNamespace(query_params=QueryDict(query))
    view = SimpleNamespace(filterset_class=GangFilters, get_queryset=Gang.objects.all)
    return StrictBackend().get_filterset(request, Gang.objects.all(), view)


@pytest.mark.parametrize("query", QUERIES)
def test_the_named_filters_leave_what_all_of_them_leave(world, query):
    few, given = narrowed(query), QueryDict(query)
    assert set(few.filters) == set(given)
    every = GangFilters(given, queryset=Gang.objects.all())
    assert set(few.qs.values_list("name", flat=True)) == set(every.qs.values_list("name", flat=True))


def test_one_request_does_not_take_filters_from_the_next(world):
    known = set(GangFilters.base_filters)
    for query, names in (
        ("name=web", {"web"}),
        ("state=running", {"tune", "remote"}),
        ("", {"web", "fit", "tune", "remote"}),
    ):
        assert {row["name"] for row in world.client("admin").read(f"gangs/?{query}")["results"]} == names
    assert set(GangFilters.base_filters) == known
    assert world.client("admin").get("/api/v1/gangs/?state=gone").status_code == 400


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("gangs/?reason=WaitsForCards", ("/reason", "'WaitsForCards'", "did you mean WaitingForCards?", "Fragmented")),
        ("gangs/?service_type=foo", ("/service_type", "'foo'", "Known: inference, training")),
        ("gangs/?phase=running", ("/phase", "'running'", "Inqueue", "Completed")),
        ("gangs/?state=foo", ("/state", "'foo'", "Known: waiting, admitted")),
        ("queues/?state=open", ("/state", "did you mean Open?", "Closing")),
        ("reclaims/?made_by=me", ("/made_by", "'me'", "Known: ")),
        ("reclaims/?from=yesterday", ("/from", "'yesterday'", "ISO 8601", "2026-03-05T03:14:00Z")),
        ("quota-changes/?source=consol", ("/source", "did you mean console?", "rollback")),
        ("alerts/?code=drifts", ("/code", "did you mean drift?", "quota_over_hardware")),
        ("drift/?kind=queue", ("/kind", "did you mean Queue?", "PriorityClass")),
        ("reclaims/?action=reclaims", ("/action", "did you mean reclaim?", "gangpreempt")),
        ("card-types/?kind=10%25s", ("/kind", "'10%s'", "Known: whole")),
        ("gangs/?waiting=%25", ("/waiting", "'%'", "true or false")),
        ("sessions/?to=%25d", ("/to", "'%d'", "ISO 8601")),
        ("sessions/?to=2026-13-01", ("/to", "'2026-13-01'", "ISO 8601")),
    ],
)
def test_an_unknown_value_is_refused_with_the_known_ones(world, query, parts):
    answer = world.client("admin").get(f"/api/v1/{query}")
    assert answer.status_code == 400
    assert [part for part in parts if part not in answer.json()["detail"]] == []
    assert [error["pointer"] for error in answer.json()["errors"]] == [parts[0]]


def test_a_moment_without_a_zone_is_one_of_utc_for_the_use_too(world):
    client = world.client("admin")
    bare, zoned = (
        client.get(f"/api/v1/usage/?cluster=east&from=2026-03-04T02:00:00{zone}&to=2026-03-04T05:00:00{zone}&step=1h")
        for zone in ("", "Z")
    )
    assert bare.status_code == 200
    assert bare.json() == zoned.json()
    refused = client.get("/api/v1/usage/?cluster=east&from=yesterday").json()
    assert refused["errors"][0]["pointer"] == "/from"
    assert refused["detail"].startswith("'yesterday': a moment in ISO 8601 is meant, such as 2026-03-05T03:14:00Z")


def test_the_document_describes_every_parameter_and_lists_the_values_of_closed_ones():
    document = yaml.load((Path(__file__).parents[2] / "openapi.yaml").read_text(), yaml.CSafeLoader)
    shared = {f"#/components/parameters/{name}": one for name, one in document["components"]["parameters"].items()}
    said = {
        (path, parameter["name"]): parameter
        for path, item in document["paths"].items()
        for operation in item.values()
        if isinstance(operation, dict)
        for given in operation.get("parameters", ())
        for parameter in [shared.get(given.get("$ref", ""), given)]
        if parameter["in"] == "query"
    }
    assert [where for where, parameter in said.items() if not parameter.get("description")] == []
    for name, value in (("reason", "WaitingForCards"), ("service_type", "training"), ("phase", "Inqueue")):
        assert value in said["/api/v1/gangs/", name]["schema"]["enum"]
