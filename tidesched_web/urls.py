"""All addresses: health, the REST API under /api/v1/, the console at /."""

from django.urls import URLPattern, URLResolver, include, path

from tidesched_web.api import problem_json
from tidesched_web.common import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("tidesched_web.api.urls")),
    path("", include("tidesched_web.console.urls")),
    # Last: whatever no route below /api/ knows is answered in the API's own form.
    path("api/<path:rest>", problem_json.unknown_address),
]
