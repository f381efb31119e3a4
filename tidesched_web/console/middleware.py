import zoneinfo
from collections.abc import Callable
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone, translation

from tidesched_web.accounts.mfa import demanded_of
from tidesched_web.accounts.models import User
from tidesched_web.common.live_memory import AFTER_WRITE_SECONDS, read_anew
from tidesched_web.console import methods

# Set by an answer to a write, so that the reader's next page, which another process may make, shows it.
WROTE = "wrote"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_LANGUAGES = frozenset(code for code, _name in settings.LANGUAGES)


class ReaderMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Everything but the console itself passes through untouched, without asking for the account."""
        if request.path.startswith(("/api/", "/static/")):
            return self.get_response(request)
        if "\0" in request.path:
            raise Http404("A zero byte is in no name that there is.")
        if (refused := methods.refusal(request)) is not None:
            return refused
        user = request.user
        language = getattr(user, "language", "") or request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        if language not in _LANGUAGES:
            language = translation.get_language() or settings.LANGUAGE_CODE
        request.LANGUAGE_CODE = language
        zone = _zone(getattr(user, "time_zone", "")) or _zone(unquote(request.COOKIES.get("tz", "")))
        door = [reverse(name) for name in _door(user)]
        if door and request.path not in {*door, reverse("console:sign_out")}:
            if "HX-Request" in request.headers:  # a part of a page is led nowhere: the whole page goes
                return HttpResponse(status=204, headers={"HX-Refresh": "true"})
            return HttpResponseRedirect(door[0])
        with (
            translation.override(language),
            timezone.override(zone or timezone.get_default_timezone()),
            read_anew(wanted=WROTE in request.COOKIES),
        ):
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", language)
        if request.method not in _SAFE:
            response.set_cookie(
                WROTE,
                "1",
                max_age=AFTER_WRITE_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response


def _door(user: User | AnonymousUser) -> tuple[str, ...]:
    """The pages that alone are open to a person before they have done what is asked of them there."""
    if getattr(user, "must_change_password", False):
        return ("console:password",)
    if demanded_of(user):
        return ("mfa_activate_totp", "mfa_add_webauthn", "account_reauthenticate")
    return ()


def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    if not name:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
