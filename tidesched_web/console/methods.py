"""A method that an address does not have is refused before anything else: sign-in, the form's token, the page."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import Resolver404, resolve
from django.views.decorators.http import require_http_methods

_View = TypeVar("_View", bound=Callable[..., Any])
OF_READS: Final = ("GET", "HEAD")
OF_FORMS: Final = (*OF_READS, "POST")


def _only(view: _View, methods: Iterable[str]) -> _View:
    guarded: Any = require_http_methods(list(methods))(view)
    guarded.methods = tuple(methods)
    found: _View = guarded
    return found


def acts_by_post(view: _View) -> _View:
    return _only(view, ("POST",))


def takes_forms(view: _View) -> _View:
    return _only(view, OF_FORMS)


def refusal(request: HttpRequest) -> HttpResponse | None:
    if request.method in OF_READS:
        return None  # what only acts says so itself
    try:
        view: Any = resolve(request.path_info).func
    except Resolver404:
        return None  # what is not there has no methods
    methods = getattr(view, "methods", getattr(getattr(view, "view_class", None), "methods", OF_READS))
    if request.method in methods:
        return None
    return HttpResponseNotAllowed(methods)
