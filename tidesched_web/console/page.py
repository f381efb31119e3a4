"""A page costs at most six queries; the account and the clusters are two of them, so a view has four of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_cache_control, patch_vary_headers

from tidesched_web.accounts.models import User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes.inbox_selectors import inbox_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live
from tidesched_web.common.permissions import Access
from tidesched_web.scheduling.cluster_selectors import clusters_now, clusters_of_frame
from tidesched_web.scheduling.selectors import open_platform_alerts

THEMES = ("auto", "light", "dark")


@dataclass
class Page:
    request: HttpRequest
    user: User
    access: Access
    clusters: list[Cluster]
    current: Cluster | None = None
    section: str = ""
    topics: str = field(default="")
    live_after: str = field(default_factory=live.place_now)

    @property
    def cluster(self) -> Cluster:
        if self.current is None:
            raise Http404
        return self.current

    @cached_property
    def inbox(self) -> int | None:
        writes = self.access.administers or bool(self.access.admin_of)
        return len(inbox_of(self.access)) if writes else None

    def render(self, template: str, context: dict[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
        htmx = getattr(self.request, "htmx", None)
        fragment = htmx is not None and bool(htmx) and htmx.target == "live"
        response = render(
            self.request,
            template,
            {
                "layout": "layouts/fragment.html" if fragment else "layouts/page.html",
                "access": self.access,
                "clusters": self.clusters,
                "bell": waiting_alerts(self.clusters, self.access),
                "inbox": self.inbox,
                "cluster": self.current,
                "now": self.current.clock() if self.current else None,
                "section": self.section,
                "topics": _with_frame(self.topics, inbox=self.inbox is not None),
                "live_after": self.live_after,
            }
            | (context or {}),
            status=status,
        )
        patch_vary_headers(response, ["HX-Request", "Cookie"])
        patch_cache_control(response, private=True, no_store=True)
        return response


def _with_frame(topics: str, *, inbox: bool) -> str:
    frame = ("alerts", "clusters", "drift", *(("changes",) if inbox else ()))
    return " ".join(dict.fromkeys((*topics.split(), *frame))) if topics else ""


def waiting_alerts(clusters: list[Cluster], access: Access) -> int:
    # Both counts are annotations of the rows.
    platform = clusters[0].platform_alerts if clusters else open_platform_alerts(access)  # type: ignore[attr-defined]
    return sum(one.open_alerts for one in clusters) + platform  # type: ignore[attr-defined]


View = Callable[..., HttpResponse]


def _sign_in_first(request: HttpRequest) -> HttpResponse:
    """Send a stranger to the sign-in page; a fragment cannot be redirected, so the whole page goes there."""
    if getattr(request, "htmx", None):
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return redirect_to_login(request.get_full_path(), resolve_url(settings.LOGIN_URL))


def _page_of(request: HttpRequest, user: User, slug: str | None, *, section: str = "", topics: str = "") -> Page:
    live_after = live.place_now()  # before anything is read: what changes later is sent to the page
    access = access_of(user)
    clusters = clusters_of_frame(access) if request.method == "GET" else clusters_now(access)
    this = Page(request, user, access, clusters, section=section, topics=topics, live_after=live_after)
    if slug is not None:
        this.current = next((cluster for cluster in clusters if cluster.slug == slug), None)
    elif clusters:
        last = request.COOKIES.get("cluster")
        this.current = next((cluster for cluster in clusters if cluster.slug == last), clusters[0])
    return this


def refused(request: HttpRequest, template: str, context: dict[str, Any], *, status: int) -> HttpResponse:
    """A page that says no: a reader keeps the navigation, a stranger stands at the door."""
    user = getattr(request, "user", None)
    if not isinstance(user, User) or user.must_change_password:
        return render(request, template, {"layout": "layouts/door.html", **context}, status=status)
    slug = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    this = _page_of(request, user, slug)
    this.current = this.current or next(iter(this.clusters), None)
    return this.render(template, context, status=status)


def page(*, section: str = "", topics: str = "") -> Callable[[View], View]:
    """A view for signed-in readers: it gets a `Page`. A `slug` in the address names its cluster, else it is a 404."""

    def decorate(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, slug: str | None = None, **arguments: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return _sign_in_first(request)
            this = _page_of(request, request.user, slug, section=section, topics=topics)
            if slug is not None and this.current is None:
                raise Http404
            response = view(this, **arguments)
            if slug is not None and request.COOKIES.get("cluster") != slug:
                response.set_cookie("cluster", slug, max_age=365 * 24 * 3600, samesite="Lax", httponly=True)
            return response

        return answer

    return decorate


def context(request: HttpRequest) -> dict[str, str]:
    theme = request.COOKIES.get("theme", "auto")
    return {"theme": theme if theme in THEMES else "auto"}
