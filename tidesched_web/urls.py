"""All addresses but the probes (tidesched_web.front.health): the REST API under /api/v1/, the console at /."""

from django.urls import URLPattern, URLResolver, include, path

from tidesched_web.api import problem_json

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("tidesched_web.api.urls")),
    path("", include("tidesched_web.console.urls")),
    # Last: whatever no route below /api/ knows is answered in the API's own form.
    path("api/<path:rest>", problem_json.unknown_address),
]

handler400 = "tidesched_web.front.failures.bad_request"
handler403 = "tidesched_web.front.failures.permission_denied"
handler404 = "tidesched_web.front.failures.not_found"
handler500 = "tidesched_web.front.failures.server_error"
