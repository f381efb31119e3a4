"""Which methods the console's addresses have: GET and HEAD, and POST where a view says that it takes a form.

A method that an address does not have is refused before anything else is asked: sign-in, the form's token, the page.
"""

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
    """A view that does something and shows nothing."""
    return _only(view, ("POST",))


def takes_forms(view: _View) -> _View:
    return _only(view, OF_FORMS)


def refusal(request: HttpRequest) -> HttpResponse | None:
    """The answer to a method that the address does not have (405, with those that it has); None for one that it has."""
    if request.method in OF_READS:
        return None  # what only acts says so itself
    try:
        view: Any = resolve(request.path_info).func
    except Resolver404:
        return None  # what is not there has no methods
    methods = getattr(getattr(view, "view_class", view), "methods", OF_READS)
    if request.method in methods:
        return None
    return HttpResponseNotAllowed(methods)
