"""Of a list's filters only those are built that the request names, and they do what all of them together do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
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
