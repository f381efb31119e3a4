"""The console's addresses. Everything about one cluster stands under its slug."""

from django.urls import path

from tidesched_web.console import (
    accounts,
    alerts,
    clusters,
    gangs,
    governance_urls,
    help_page,
    job_urls,
    manage_urls,
    nodes,
    overview,
    queues,
    quota_urls,
    reclaims,
    search,
    sessions,
    stream,
)

app_name = "console"

urlpatterns = [
    path("", overview.home, name="overview"),
    path("sign-in/", accounts.SignIn.as_view(), name="sign_in"),
    path("sign-out/", accounts.SignOut.as_view(), name="sign_out"),
    path("password/", accounts.password, name="password"),
    path("profile/", accounts.profile, name="profile"),
    path("help/", help_page.help_page, name="help"),
    path("api/v1/stream", stream.stream, name="stream"),
    path("clusters/", clusters.clusters, name="clusters"),
    path("clusters/<slug:slug>/", overview.overview, name="cluster_overview"),
    path("clusters/<slug:slug>/tide/", overview.tide, name="tide"),
    path("clusters/<slug:slug>/pause/", clusters.pause, name="pause"),
    path("clusters/<slug:slug>/search/", search.search, name="search"),
    path("clusters/<slug:slug>/queues/", queues.queues, name="queues"),
    path("clusters/<slug:slug>/queues/<str:name>/", queues.queue, name="queue"),
    path("clusters/<slug:slug>/queues/<str:name>/usage/", queues.usage, name="queue_usage"),
    path("clusters/<slug:slug>/gangs/", gangs.gangs, name="gangs"),
    path("clusters/<slug:slug>/gangs/<int:pk>/", gangs.gang, name="gang"),
    path("clusters/<slug:slug>/gangs/<str:namespace>/<str:name>/", gangs.gang_by_name, name="gang_by_name"),
    path("clusters/<slug:slug>/reclaims/", reclaims.reclaims, name="reclaims"),
    path("clusters/<slug:slug>/reclaims/<int:pk>/", reclaims.reclaim, name="reclaim"),
    path("clusters/<slug:slug>/sessions/", sessions.sessions, name="sessions"),
    path("clusters/<slug:slug>/sessions/timings/", sessions.timings, name="session_timings"),
    path("clusters/<slug:slug>/sessions/<int:number>/", sessions.session, name="session"),
    path("clusters/<slug:slug>/nodes/", nodes.nodes, name="nodes"),
    path("clusters/<slug:slug>/alerts/", alerts.alerts, name="alerts"),
    path("clusters/<slug:slug>/alerts/<int:pk>/resolve/", alerts.resolve, name="resolve_alert"),
    *governance_urls.urlpatterns,
    *job_urls.urlpatterns,
    *manage_urls.urlpatterns,
    *quota_urls.urlpatterns,
]
