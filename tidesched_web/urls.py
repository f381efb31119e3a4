"""All addresses: health, the REST API under /api/v1/, the console at /."""

from django.urls import URLPattern, URLResolver, include, path

from tidesched_web.common import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("tidesched_web.api.urls")),
    path("", include("tidesched_web.console.urls")),
]
