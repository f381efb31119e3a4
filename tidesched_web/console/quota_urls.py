"""Addresses of the quota tree, its editor and the changes that come of it."""

from django.urls import path

from tidesched_web.console import change_acts, change_impact, change_page, changes, quota_editor, quota_tree

urlpatterns = [
    path("clusters/<slug:slug>/quota/", quota_tree.tree, name="quota_tree"),
    path("clusters/<slug:slug>/quota/branch/", quota_tree.branch, name="quota_branch"),
    path("clusters/<slug:slug>/quota/map/", quota_tree.treemap, name="quota_map"),
    path("clusters/<slug:slug>/quota/edit/", quota_editor.editor, name="quota_editor"),
    path("clusters/<slug:slug>/quota/edit/data/", quota_editor.editor_data, name="quota_editor_data"),
    path("clusters/<slug:slug>/quota/edit/check/", quota_editor.check, name="quota_check"),
    path("clusters/<slug:slug>/quota/edit/review/", quota_editor.review, name="quota_review"),
    path("clusters/<slug:slug>/changes/", changes.changes, name="changes"),
    path("clusters/<slug:slug>/changes/<int:pk>/", change_page.change, name="change"),
    path("clusters/<slug:slug>/changes/<int:pk>/impact/", change_impact.change_impact, name="change_impact"),
    path("clusters/<slug:slug>/changes/<int:pk>/server/", change_impact.change_server, name="change_server"),
    path("clusters/<slug:slug>/changes/<int:pk>/day/", change_impact.change_day, name="change_day"),
    path("clusters/<slug:slug>/changes/<int:pk>/<slug:verb>/", change_acts.change_act, name="change_act"),
]
