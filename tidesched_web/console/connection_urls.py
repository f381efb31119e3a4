"""Addresses of how clusters are reached."""

from django.urls import path

from tidesched_web.console import connections

urlpatterns = [
    path("new/cluster/", connections.cluster_new, name="cluster_new"),
    path("new/cluster/rights/<slug:mode>.yaml", connections.cluster_rights, name="cluster_rights"),
    path("new/cluster/<int:pk>/", connections.cluster_offer, name="cluster_offer"),
    path("clusters/<slug:slug>/connection/", connections.connection, name="connection"),
    path("clusters/<slug:slug>/connection/replace/", connections.connection_replace, name="connection_replace"),
    path("clusters/<slug:slug>/connection/replace/<int:pk>/", connections.connection_offer, name="connection_offer"),
    path("clusters/<slug:slug>/connection/test/", connections.connection_test, name="connection_test"),
    path("clusters/<slug:slug>/connection/tests/<int:pk>/", connections.connection_tested, name="connection_tested"),
    path("clusters/<slug:slug>/connection/disconnect/", connections.disconnect, name="disconnect"),
    path("clusters/<slug:slug>/connection/remove/", connections.cluster_remove, name="cluster_remove"),
    path("clusters/<slug:slug>/settings/", connections.cluster_settings, name="cluster_settings"),
]
