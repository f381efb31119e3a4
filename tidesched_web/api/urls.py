from django.urls import include, path
from rest_framework.routers import SimpleRouter

from tidesched_web.api import index, schema, stream
from tidesched_web.api.v1 import (
    accounts,
    alerts,
    audit,
    changes,
    clusters,
    drift,
    jobs,
    owners,
    quota,
    scheduling,
    tide_plans,
    trees,
    users,
    workloads,
)

app_name = "api"

router = SimpleRouter(use_regex_path=False)
router.register("clusters", clusters.Clusters, "clusters")
router.register("tenants", owners.Tenants, "tenants")
router.register("projects", owners.Projects, "projects")
router.register("business-lines", owners.BusinessLines, "business-lines")
router.register("queues", quota.Queues, "queues")
router.register("card-types", clusters.CardTypes, "card-types")
router.register("priority-classes", quota.PriorityClasses, "priority-classes")
router.register("tide-plans", tide_plans.TidePlans, "tide-plans")
router.register("grants", quota.Grants, "grants")
router.register("gangs", workloads.Gangs, "gangs")
router.register("reclaims", scheduling.Reclaims, "reclaims")
router.register("sessions", scheduling.Sessions, "sessions")
router.register("nodes", clusters.Nodes, "nodes")
router.register("quota-changes", changes.QuotaChanges, "quota-changes")
router.register("jobs", jobs.Jobs, "jobs")
router.register("drift", drift.DriftView, "drift")
router.register("alerts", alerts.Alerts, "alerts")
router.register("audit", audit.Audit, "audit")
router.register("members", accounts.Members, "members")
router.register("tokens", accounts.Tokens, "tokens")
router.register("users", users.Users, "users")

_routes = [
    *((prefix, f"{basename}-list") for prefix, _view, basename in router.registry),
    ("usage", "usage"),
    ("schema", "schema"),
    ("docs", "schema-docs"),
]

urlpatterns = [
    path("", index.Index.as_view(routes=_routes), name="index"),
    path("schema/", schema.SchemaView.as_view(), name="schema"),
    path("schema/docs/", schema.SchemaPage.as_view(), name="schema-docs"),
    path("stream", stream.stream, name="stream"),
    path("usage/", scheduling.Usage.as_view(), name="usage"),
    path("clusters/<int:pk>/tree/", trees.Tree.as_view(), name="clusters-tree"),
    path("", include(router.urls)),
]
