"""All addresses but the probes (tidesched_web.front.health): the REST API under /api/v1/, the console at /."""

from django.urls import URLPattern, URLResolver, include, path

from tidesched_web.api import problem_json
from tidesched_web.console import sign_in
from tidesched_web.console.accounts import SignIn, SignOut
from tidesched_web.front.metrics import Metrics

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("tidesched_web.api.urls")),
    path("metrics", Metrics.as_view(), name="metrics"),
    path("", include("tidesched_web.console.urls")),
    path("sign-in/with/<slug:provider_id>/", sign_in.begin, name="oidc_login"),
    path("sign-in/with/<slug:provider_id>/callback/", sign_in.come_back, name="oidc_callback"),
    # The same pages under the names that allauth knows them by.
    path("sign-in/", SignIn.as_view(), name="account_login"),
    path("", include("tidesched_web.console.mfa")),
    path("sign-out/", SignOut.as_view(), name="account_logout"),
    # Last: whatever no route below /api/ knows is answered in the API's own form.
    path("api/<path:rest>", problem_json.unknown_address),
]

handler400 = "tidesched_web.front.failures.bad_request"
handler403 = "tidesched_web.front.failures.permission_denied"
handler404 = "tidesched_web.front.failures.not_found"
handler429 = "tidesched_web.console.accounts.too_many_tries"  # asked for by allauth
handler500 = "tidesched_web.front.failures.server_error"
