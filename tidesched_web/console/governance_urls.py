"""Addresses of what answers for quota: the audit log, tide plans, the tree as a file, adoption."""

from django.urls import path

from tidesched_web.console import adoption, audit, drift, quota_at, tide_acts, tide_plans, tide_steps, tree_files

_CLUSTER = "clusters/<slug:slug>/"

urlpatterns = [
    path("audit/", audit.audit, name="audit"),
    path("audit/<int:pk>/", audit.entry, name="audit_entry"),
    path("audit/integrity/", audit.integrity, name="audit_integrity"),
    path("audit/integrity/verify/", audit.verify, name="audit_verify"),
    path("audit/integrity/seal/", audit.seal, name="audit_seal"),
    path("audit/segments/<int:pk>/drop/", audit.drop, name="audit_drop"),
    path(f"{_CLUSTER}tree/", tree_files.tree_page, name="tree_file"),
    path(f"{_CLUSTER}tree/export/", tree_files.export, name="tree_export"),
    path(f"{_CLUSTER}adoption/", adoption.adoption, name="adoption"),
    path(f"{_CLUSTER}drift/", drift.drift, name="drift"),
    path(f"{_CLUSTER}drift/decide/", drift.decide, name="drift_decide"),
    path(f"{_CLUSTER}tide-plans/", tide_plans.plans, name="tide_plans"),
    path(f"{_CLUSTER}quota-at/", quota_at.quota_at, name="quota_at"),
    path(f"{_CLUSTER}tide-steps/", tide_steps.steps, name="tide_steps"),
    path(f"{_CLUSTER}new/tide-plan/", tide_plans.new, name="tide_plan_new"),
    path(f"{_CLUSTER}new/tide-plan/week/", tide_plans.week_of_draft, name="tide_plan_week"),
    path(f"{_CLUSTER}tide-plans/<str:name>/", tide_plans.plan, name="tide_plan"),
    path(f"{_CLUSTER}tide-plans/<str:name>/edit/", tide_plans.edit, name="tide_plan_edit"),
    path(f"{_CLUSTER}tide-plans/<str:name>/switch/", tide_acts.switch, name="tide_plan_switch"),
    path(f"{_CLUSTER}tide-plans/<str:name>/take-back/", tide_acts.take_back, name="tide_plan_take_back"),
    path(f"{_CLUSTER}tide-plans/<str:name>/delete/", tide_acts.delete, name="tide_plan_delete"),
    path(f"{_CLUSTER}tide-plans/<str:name>/preview/", tide_plans.preview, name="tide_plan_preview"),
]
