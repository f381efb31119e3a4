"""The life of a change: draft, plan, approval, apply, roll back; rights, staleness, and what the log says."""

import datetime as dt

import pytest
from django.utils import timezone

from tests.web.changes.ground import A100, H200, QUEUE, TRAINING, intent_of_the_log
from tidesched_web.accounts.models import Tenant
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.verification import verify_all
from tidesched_web.changes import services as changes
from tidesched_web.changes import tasks
from tidesched_web.changes.models import ChangeObject, QuotaChange
from tidesched_web.changes.selectors import owner_keys, read_tree, visible_changes
from tidesched_web.changes.tree_document import patch_between
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.models import Queue, QuotaTree
from tidesched_web.quota.selectors import visible_queues, visible_queues_of


def refused(call, code):
    with pytest.raises(DomainError) as error:
        call()
    assert error.value.code == code, (error.value.code, error.value.message, error.value.extra)
    return error.value


def test_a_tree_is_read_in_eleven_queries_whatever_its_size(ground, django_assert_num_queries):
    with django_assert_num_queries(11):
        tree = read_tree(ground.cluster)
    assert tree["tenant/acme"]["quota"] == {"inference": {"card_quota": {H200: 8}}}
    assert tree["queue/acme-online"] == {
        "card_quota": {H200: 6}, "priority": 80000, "project": "chat", "reclaimable": False,
        "service_type": "inference", "state": "Open", "tenant": "acme", "weight": 1,
    }  # fmt: skip
    assert list(tree) == sorted(tree)
    assert tree["rules/cluster"] == {
        "approval_required": False, "overcommit_inference_percent": 100, "overcommit_training_percent": 100
    }  # fmt: skip
    seen = read_tree(ground.cluster, ground.access("owner"))
    assert {key.partition("/")[2].partition("-")[0].partition("/")[0] for key in seen} == {"acme"}
    assert read_tree(ground.cluster, ground.access("auditor")) == tree


def test_the_queues_of_a_cluster_are_read_without_its_row(ground, django_assert_num_queries):
    for name, seen in (("root", {"acme", "rival"}), ("owner", {"acme"})):
        access = ground.access(name)
        with django_assert_num_queries(1) as asked:
            found = list(visible_queues_of(ground.cluster, access))
            assert {queue.tenant and queue.tenant.slug for queue in found} == seen
            assert {id(queue.cluster) for queue in found} == {id(ground.cluster)}
        assert "clusters_cluster" not in asked.captured_queries[0]["sql"]
        assert set(found) == set(visible_queues(access).filter(cluster=ground.cluster))


def test_owners_of_queues_are_those_of_the_tree(ground):
    tree = read_tree(ground.cluster)
    assert sorted(owner_keys()) == [key for key in tree if key.startswith(("project/", "business-line/"))]


def test_a_change_goes_from_draft_over_plan_into_the_tree(ground):
    version = QuotaTree.objects.get().version
    change = ground.draft({"queue/acme-online": {"card_quota": {H200: 8, A100: None}}}, reason="")
    plan = changes.plan(change=change, access=ground.access("root"))
    assert plan["fields"] == [
        {"object": "queue/acme-online", "field": f"/card_quota/{H200}", "before": 6, "after": 8, "in_use": 0.0}
    ]
    assert [(found["kind"], found["name"]) for found in plan["objects"]] == [("Queue", "acme-online")]
    assert plan["objects"][0]["after"]["metadata"]["annotations"]["volcano.sh/card.quota"] == f'{{"{H200}":8}}'
    assert (plan["errors"], plan["approval"]["due"], plan["base_version"]) == ([], False, version)
    refused(lambda: changes.apply(change=change, access=ground.access("root")), "reason_required")
    change = changes.apply(change=change, access=ground.access("root"), reason="more users")
    assert (change.state, change.tree_version, ground.quota("acme-online")) == ("applied", version + 1, 8)
    assert [row.state for row in ChangeObject.objects.all()] == ["skipped"]  # the cluster is in mode observe
    entries = list(AuditEntry.objects.order_by("-seq").filter(reason="more users"))
    assert [entry.action for entry in entries] == ["quota_change.apply", "queue.update"]
    assert (entries[1].before["card_quota"], entries[1].after["card_quota"]) == ({H200: 6}, {H200: 8})
    assert changes.apply(change=change, access=ground.access("root")).version == change.version  # harmless
    assert QuotaTree.objects.get().version == version + 1
    assert all(report.intact for report in verify_all())


def test_everything_can_be_made_edited_and_deleted_in_one_change(ground):
    before = ground.tree()
    made = ground.carry_out(
        {
            "tenant/new": {
                "quota": {"inference": {"card_quota": {H200: 0}, "cpu_milli": 5, "memory_bytes": 2**30 + 7}}
            },
            "project/new/web": {"name": "Web"},
            "business-line/-/base": {},
            "business-line/new/own": {},
            "card-type/NVIDIA-B200": {"resource": "nvidia.com/gpu"},
            "card-type/NVIDIA-B200/mig-1g": {"kind": "mig", "parent": "NVIDIA-B200"},
            "priority-class/pc-top": {"value": 90000},
            "queue/web": {
                "service_type": "inference",
                "tenant": "new",
                "project": "web",
                "card_quota": {"NVIDIA-B200": 0},
            },
            "queue/base": {"service_type": "training", "business_line": "base", "cpu_milli": 7, "deserved": {"cpu": 4}},
            "grant/web/web": {},
            "queue/acme-online": {"weight": 3, "card_quota": {H200: 5}},
            "tenant/acme": {"name": "Acme", "quota": {"inference": None}},
        }
    )
    assert made.state == "applied"
    tree = ground.tree()
    assert tree["tenant/new"]["quota"]["inference"]["memory_bytes"] == 2**30
    assert (tree["tenant/acme"]["quota"], tree["queue/acme-online"]["weight"]) == ({}, 3)
    assert (tree["queue/base"]["priority"], tree["queue/base"]["reclaimable"]) == (20000, True)
    assert tree["grant/web/web"] == {}
    assert intent_of_the_log(ground) == {key: tree[key] for key in made.edits}
    back = changes.roll_back(change=made, access=ground.access("root"))
    assert back.state == "draft"
    back = changes.apply(change=back, access=ground.access("root"))
    assert (back.state, ground.tree()) == ("applied", before)
    made.refresh_from_db()
    assert made.state == "rolled_back"
    assert all(report.intact for report in verify_all())


def test_a_breach_names_the_figure_and_who_could_give_way(ground):
    ground.carry_out({"queue/acme-more": {**QUEUE, "card_quota": {H200: 2}}})
    error = refused(lambda: ground.carry_out({"queue/acme-online": {"card_quota": {H200: 7}}}), "quota_breach")
    found = error.extra["errors"][0]
    assert (found["object"], found["field"]) == ("queue/acme-online", f"/card_quota/{H200}")
    assert (found["code"], found["requested"], found["limit"], found["sibling"]) == (
        "exceeds_tenant", 9, 8, "acme-more"
    )  # fmt: skip
    error = refused(
        lambda: ground.carry_out({"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 7}}}}}), "quota_breach"
    )
    assert error.extra["errors"][0]["code"] == "below_children"
    hidden = refused(
        lambda: ground.carry_out(
            {"tenant/acme": {"quota": None}, "queue/acme-online": {"card_quota": {H200: 15}}}
        ), "quota_breach"
    )  # fmt: skip
    assert (hidden.extra["errors"][0]["code"], hidden.extra["errors"][0]["sibling"]) == ("exceeds_hardware", "rival")


@pytest.mark.parametrize(
    ("edits", "code", "field"),
    [
        ({"queue/x": {}}, "required", "/service_type"),
        ({"queue/x": {"service_type": "inference"}}, "required", "/tenant"),
        ({"queue/x": {**QUEUE, "project": "chta"}}, "unknown_reference", "/project"),
        ({"queue/x": {**QUEUE, "card_quota": {"NVIDIA-H20": 1}}}, "unknown_card", "/card_quota/NVIDIA-H20"),
        ({"queue/x": {**QUEUE, "card_quota": {H200: -1}}}, "invalid", f"/card_quota/{H200}"),
        ({"queue/x": {**QUEUE, "wieght": 1}}, "unknown_field", "/wieght"),
        ({"queue/X y": QUEUE}, "invalid_name", ""),
        *(
            ({f"queue/{name}": QUEUE}, "invalid_name", "")
            for name in ("root", "default", "a..b", "a.-b", "a.", "x" * 254)
        ),
        ({"grant/team.a/acme-online": {}}, "invalid_name", ""),
        ({"grant/space/default": {}}, "invalid_name", ""),
        ({"priority-class/a..b": {"value": 3}}, "invalid_name", ""),
        ({"tide-plan/night\x07": {}}, "invalid_name", ""),
        ({"tide-plan/night\x9b31m": {}}, "invalid_name", ""),
        ({"queue/acme-online": {"service_type": "training"}}, "immutable", "/service_type"),
        ({"tenant/acme": None}, "in_use", ""),
        ({"queue/nobody": None}, "unknown_object", ""),
    ],
)
def test_what_is_wrong_is_said_at_its_place(ground, edits, code, field):
    errors = changes.check(cluster=ground.cluster, edits=edits, access=ground.access("root"))["errors"]
    assert (code, field) in [(error["code"], error["field"]) for error in errors], errors
    with pytest.raises(DomainError):
        ground.carry_out(edits)


@pytest.mark.parametrize("name", ["team.a", "x" * 64, "0.9-a.b" + 60 * ".c" + 126 * "d", "defaults", "root.a"])
def test_a_queue_may_be_named_as_a_cluster_allows_it(ground, name):
    ground.carry_out({f"queue/{name}": QUEUE | {"parent": "a" * 253}, f"grant/space/{name}": {}})
    ground.carry_out({f"queue/{name}": {"weight": 2}})
    assert ground.tree()[f"queue/{name}"]["weight"] == 2
    assert f"grant/space/{name}" in ground.tree()
    ground.carry_out({f"queue/{name}": None, f"grant/space/{name}": None})


def test_another_value_of_a_priority_class_has_to_be_meant(ground):
    ground.carry_out({"priority-class/pc": {"value": 5}})
    error = refused(lambda: ground.carry_out({"priority-class/pc": {"value": 6}}), "against_rules")
    assert error.extra["errors"][0]["code"] == "replace_needed"
    change = ground.carry_out({"priority-class/pc": {"value": 6, "replace": True}})
    assert ground.tree()["priority-class/pc"]["value"] == 6
    assert AuditEntry.objects.filter(action="priority_class.replace").count() == 1
    assert changes.undoing(change) == {"priority-class/pc": {"value": 5, "replace": True}}


def test_a_moved_base_is_refused_with_what_changed_and_only_for_what_is_touched(ground):
    change = ground.draft({"queue/acme-online": {"card_quota": {H200: 4}}})
    ground.carry_out({"queue/acme-train": {"weight": 2}})
    assert changes.plan(change=change, access=ground.access("root"))["stale"] == []
    ground.carry_out({"queue/acme-online": {"card_quota": {H200: 5}, "weight": 2}})
    error = refused(lambda: changes.apply(change=change, access=ground.access("root")), "conflict")
    assert error.extra["changed_since"] == [
        {"object": "queue/acme-online", "field": f"/card_quota/{H200}", "before": 6, "after": 5}
    ]
    change = changes.edit_draft(change=change, access=ground.access("root"), rebase=True)
    assert changes.apply(change=change, access=ground.access("root")).state == "applied"
    assert (ground.tree()["queue/acme-online"]["weight"], ground.quota("acme-online")) == (2, 4)


def test_what_others_changed_in_other_figures_of_the_same_object_is_kept(ground):
    change = ground.draft({"queue/acme-train": {"card_quota": {H200: 4}}})
    ground.carry_out({"queue/acme-train": {"weight": 2, "card_quota": {A100: 3}}})
    plan = changes.plan(change=change, access=ground.access("root"))
    assert plan["stale"] == []
    assert [(found["field"], found["before"], found["after"]) for found in plan["merged"]] == [
        (f"/card_quota/{A100}", None, 3), ("/weight", 1, 2)
    ]  # fmt: skip
    assert changes.apply(change=change, access=ground.access("root")).state == "applied"
    queue = ground.tree()["queue/acme-train"]
    assert (queue["weight"], queue["card_quota"]) == (2, {A100: 3, H200: 4})
    back = changes.roll_back(change=change, access=ground.access("root"))
    changes.apply(change=back, access=ground.access("root"))
    assert ground.tree()["queue/acme-train"]["card_quota"] == {A100: 3, H200: 8}


def test_a_draft_knows_what_its_editor_saw_in_each_figure(ground):
    ground.carry_out({"queue/acme-online": {"card_quota": {H200: 5}}})
    seen = {"queue/acme-online": {"card_quota": {H200: 6, A100: None}}}
    edits = {"queue/acme-online": {"card_quota": {H200: 4, A100: 1}}}
    change = ground.draft(edits, known=seen, once=True)
    stale = changes.plan(change=change, access=ground.access("root"))["stale"]
    assert [(found["field"], found["before"], found["after"]) for found in stale] == [(f"/card_quota/{H200}", 6, 5)]
    assert ground.draft(edits, known=seen, once=True).pk == change.pk, "sent twice it is one draft"
    tenant = {"tenant/rival": {"quota": {"training": {"card_quota": {A100: 1}}}}}
    unset = {"tenant/rival": {"quota": {"training": {"card_quota": {A100: None}}}}}
    other = ground.draft(tenant, known=unset)
    assert changes.plan(change=other, access=ground.access("root"))["stale"] == []


def test_a_stale_version_is_refused(ground):
    version = Queue.objects.get(name="acme-online").version
    edits = {"queue/acme-online": {"weight": 2}}
    ground.carry_out(edits, versions={"queue/acme-online": version})
    error = refused(
        lambda: ground.carry_out({"queue/acme-online": {"weight": 3}}, versions={"queue/acme-online": version}), "stale"
    )
    assert error.extra["etag"] == f'"{version + 1}"'
    same = ground.carry_out(edits)
    assert (same.pk, same.state) == (None, "applied")


def test_after_a_node_is_lost_lowering_works_and_raising_does_not(ground):
    ground.carry_out({"tenant/acme": {"quota": None}, "tenant/rival": {"quota": None}})
    ground.cluster.card_types.filter(name=H200).update(hardware=4)
    assert ground.carry_out({"queue/acme-online": {"card_quota": {H200: 5}}}).state == "applied"
    refused(lambda: ground.carry_out({"queue/acme-online": {"card_quota": {H200: 6}}}), "quota_breach")


# -- approval ----------------------------------------------------------------------------------------------------------


def acts():
    return list(AuditEntry.objects.filter(object_type="quota_change").order_by("seq").values_list("action", "actor"))


def test_where_approval_is_due_another_person_has_to_agree(ground):
    Cluster.objects.update(approval_required=True)
    ground.cluster.refresh_from_db()
    change = ground.carry_out({"queue/acme-online": {"weight": 2}})
    assert (change.state, ground.tree()["queue/acme-online"]["weight"]) == ("waiting", 1)
    assert changes.apply(change=change, access=ground.access("root")).state == "waiting"
    refused(lambda: changes.approve(change=change, access=ground.access("root")), "permission_denied")
    refused(lambda: changes.approve(change=change, access=ground.access("mate")), "permission_denied")
    refused(lambda: changes.approve(change=change, access=ground.access("auditor")), "permission_denied")
    refused(lambda: changes.approve(change=change, access=ground.access("rival")), "not_found")
    done = changes.approve(change=change, access=ground.access("second"))
    assert (done.state, done.approved_by, ground.tree()["queue/acme-online"]["weight"]) == ("applied", "second", 2)
    assert changes.approve(change=change, access=ground.access("second")).state == "applied"
    assert acts() == [
        ("quota_change.submit", "root"), ("quota_change.approve", "second"), ("quota_change.apply", "root")
    ]  # fmt: skip


def test_a_tenant_may_demand_approval_and_an_edit_takes_it_back(ground):
    ground.carry_out({"tenant/acme": {"approval_required": True}})
    assert ground.carry_out({"queue/rival-online": {"weight": 2}}).state == "applied"
    change = ground.draft({"queue/acme-online": {"weight": 2}}, who="root")
    change = changes.approve(change=change, access=ground.access("second"), reason="agreed")
    assert (change.state, change.approved_reason) == ("approved", "agreed")  # the apply has not been asked for
    change = changes.edit_draft(change=change, access=ground.access("root"), edits={"queue/acme-online": {"weight": 9}})
    assert (change.state, change.approved_by, change.approved_reason) == ("draft", "", "")
    refused(lambda: changes.edit_draft(change=change, access=ground.access("second"), edits={}), "permission_denied")
    change = changes.apply(change=change, access=ground.access("root"))
    assert change.state == "waiting"
    rejected = changes.reject(change=change, access=ground.access("second"), reason="too much")
    assert (rejected.state, rejected.closed_reason) == ("rejected", "too much")
    refused(lambda: changes.apply(change=rejected, access=ground.access("root")), "conflict")
    off = ground.carry_out({"tenant/acme": {"approval_required": False}})
    assert off.state == "waiting"  # the rule guards itself
    assert changes.cancel(change=off, access=ground.access("root")).state == "cancelled"


def test_the_rules_of_a_cluster_are_changed_like_its_quotas(ground):
    ground.carry_out({"rules/cluster": {"overcommit_inference_percent": 150}, "tenant/acme": {"quota": None}})
    assert ground.carry_out({"queue/acme-online": {"card_quota": {H200: 16}}}).state == "applied"
    error = refused(lambda: ground.carry_out({"rules/cluster": {"overcommit_inference_percent": 140}}), "quota_breach")
    found = error.extra["errors"][0]
    assert (found["object"], found["field"]) == ("rules/cluster", "/overcommit_inference_percent")
    assert (found["requested"], found["limit"], found["sibling"]) == (24, 22, "acme-online")
    refused(lambda: ground.carry_out({"rules/cluster": None}), "invalid")
    refused(lambda: ground.carry_out({"rules/other": {}}), "invalid")
    ground.carry_out({"rules/cluster": {"approval_required": True}})
    ground.cluster.refresh_from_db()
    assert ground.cluster.approval_required
    assert ground.carry_out({"rules/cluster": {"approval_required": False}}).state == "waiting"
    assert ground.carry_out({"queue/rival-online": {"weight": 2}}).state == "waiting"


# -- at a set time -----------------------------------------------------------------------------------------------------


def test_a_change_is_applied_at_its_time_by_the_sweep_once(ground):
    later = timezone.now() + dt.timedelta(hours=1)
    change = ground.carry_out({"queue/acme-online": {"weight": 2}}, apply_at=later)
    assert change.state == "approved"
    assert changes.sweep() == 0
    QuotaChange.objects.update(apply_at=timezone.now())
    assert changes.sweep() == 1
    assert changes.sweep() == 0
    change.refresh_from_db()
    assert (change.state, ground.tree()["queue/acme-online"]["weight"]) == ("applied", 2)


def test_what_refuses_a_change_at_its_time_is_kept_with_it(ground):
    later = timezone.now() + dt.timedelta(hours=1)
    change = ground.carry_out({"queue/acme-online": {"weight": 2}}, apply_at=later)
    ground.carry_out({"queue/acme-online": {"weight": 5}})
    QuotaChange.objects.filter(pk=change.pk).update(apply_at=timezone.now())
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, change.failure["code"], change.committed_at) == ("failed", "conflict", None)
    assert change.failure["changed_since"][0]["after"] == 5
    assert ground.tree()["queue/acme-online"]["weight"] == 5
    assert changes.cancel(change=change, access=ground.access("root")).state == "cancelled"


def test_an_author_who_lost_the_right_meanwhile_changes_nothing(ground):
    later = timezone.now() + dt.timedelta(hours=1)
    change = ground.carry_out({"queue/acme-online": {"card_quota": {H200: 5}}}, who="owner", apply_at=later)
    QuotaChange.objects.update(apply_at=timezone.now())
    ground.users["owner"].memberships.update(role="member")
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, change.failure["code"]) == ("failed", "permission_denied")


# -- rights ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "edits", "code"),
    [
        ("owner", {"queue/acme-online": {"card_quota": {H200: 7}}}, None),
        ("owner", {"queue/acme-two": {**QUEUE, "card_quota": {H200: 1}}}, None),
        ("owner", {"queue/acme-two": TRAINING, "project/acme/new": {}, "business-line/acme/new": {}}, None),
        ("owner", {"tenant/acme": {"name": "Acme"}}, None),
        ("owner", {"queue/acme-online": {"card_quota": {H200: 9}}}, "quota_breach"),
        ("owner", {"tenant/acme": {"quota": {"inference": {"card_quota": {H200: 7}}}}}, "permission_denied"),
        ("owner", {"tenant/acme": {"approval_required": True}}, "permission_denied"),
        ("owner", {"tenant/acme": {"quota": None}}, "permission_denied"),
        ("owner", {"queue/rival-online": {"weight": 1}}, "not_found"),
        ("owner", {"queue/rival-online": None}, "not_found"),
        ("owner", {"project/rival/chat": {"name": "x"}}, "not_found"),
        ("owner", {"project/rival/more": {}}, "not_found"),
        ("owner", {"queue/x": {**QUEUE, "tenant": "rival"}}, "permission_denied"),
        ("owner", {"queue/acme-train": {"tenant": "rival"}}, "permission_denied"),
        ("owner", {"queue/x": {"service_type": "training", "business_line": "research"}}, "permission_denied"),
        ("owner", {"queue/acme-online": {"priority": 80001}}, "permission_denied"),
        ("owner", {"queue/acme-online": {"weight": 2}}, "permission_denied"),
        ("owner", {"queue/acme-train": {"reclaimable": False}}, "permission_denied"),
        ("owner", {"queue/acme-online": {"guarantee": {"cpu": "4"}}}, "permission_denied"),
        ("owner", {"priority-class/mine": {"value": 1}}, "permission_denied"),
        ("owner", {"card-type/mine": {}}, "permission_denied"),
        ("owner", {"rules/cluster": {"overcommit_inference_percent": 200}}, "permission_denied"),
        ("owner", {"tide-plan/mine": {}}, "permission_denied"),
        ("owner", {"tenant/mine": {}}, "not_found"),
        ("owner", {"grant/acme/acme-online": {}}, "permission_denied"),
        ("mate", {"queue/acme-online": {"card_quota": {H200: 5}}}, "permission_denied"),
        ("auditor", {"queue/acme-online": {"card_quota": {H200: 5}}}, "permission_denied"),
        ("rival", {"queue/acme-online": {"card_quota": {H200: 5}}}, "not_found"),
    ],
)
def test_everybody_changes_only_what_is_theirs(ground, who, edits, code):
    if code is None:
        assert ground.carry_out(edits, who=who).state == "applied"
        return
    refused(lambda: ground.carry_out(edits, who=who), code)
    assert not QuotaChange.objects.exists()


def test_a_grant_is_a_tenants_act_once_the_cluster_has_one(ground):
    ground.carry_out({"grant/root/rival-online": {}})
    assert ground.carry_out({"grant/acme/acme-online": {}}, who="owner").state == "applied"
    assert ground.carry_out({"grant/acme/acme-online": None}, who="owner").state == "applied"
    refused(lambda: ground.carry_out({"grant/root/rival-online": None}, who="rival"), "permission_denied")


def test_a_namespace_of_another_tenant_is_shared_by_a_platform_admin_alone(ground):
    """Its gangs that name a wrong queue would be shown to people of the tenant that took it."""
    ground.carry_out({"grant/team/rival-online": {}, "grant/common/rival-train": {}, "grant/common/acme-train": {}})
    platforms = {"service_type": "training", "business_line": "base"}
    ground.carry_out({"business-line/-/base": {}, "queue/base": platforms, "grant/root/base": {}})
    theirs = {"grant/team/acme-online": {}}
    for act in (ground.carry_out, ground.draft):
        error = refused(lambda act=act: act(theirs, who="owner"), "permission_denied")
        assert "Namespace team belongs to another tenant" in error.message
        assert "rival" not in error.message
    for name in ("root", "kube-system"):
        refused(lambda name=name: ground.draft({f"grant/{name}/acme-online": {}}, who="owner"), "permission_denied")
    assert ground.carry_out({"grant/common/acme-online": {}}, who="owner").state == "applied"
    plan = changes.check(cluster=ground.cluster, edits=theirs, access=ground.access("root"))
    assert [(one["object"], one["code"]) for one in plan["warnings"] if one["code"] != "not_sent"] == [
        ("grant/team/acme-online", "namespace_of_tenant")
    ]
    assert any("Namespace team belongs to tenant rival" in one["detail"] for one in plan["warnings"])
    shared = ground.carry_out(theirs)
    assert (shared.state, shared.platform_only) == ("applied", True)
    assert "rival" not in str(changes.shown_plan(change=shared, access=ground.access("owner")))


def test_who_sees_which_changes(ground):
    mine = ground.carry_out({"queue/acme-online": {"card_quota": {H200: 5}}}, who="owner")
    both = ground.carry_out({"queue/acme-online": {"weight": 2}, "queue/rival-online": {"weight": 2}})
    wide = ground.carry_out({"priority-class/pc": {"value": 1}})
    ours = ground.carry_out({"queue/acme-train": {"weight": 2}})

    def seen(who):
        return set(visible_changes(ground.access(who)).values_list("pk", flat=True))

    assert seen("root") == seen("auditor") == {mine.pk, both.pk, wide.pk, ours.pk}
    assert seen("owner") == seen("mate") == {mine.pk, ours.pk}
    assert seen("rival") == set()


def test_another_tenants_name_is_not_told_as_the_sibling(ground):
    ground.carry_out({"tenant/acme": {"quota": None}})
    error = refused(
        lambda: ground.carry_out({"queue/acme-online": {"card_quota": {H200: 9}}}, who="owner"), "quota_breach"
    )
    assert (error.extra["errors"][0]["code"], error.extra["errors"][0]["sibling"]) == ("exceeds_hardware", None)


# -- roll back ---------------------------------------------------------------------------------------------------------


def test_a_roll_back_touches_nothing_that_others_changed_since(ground):
    change = ground.carry_out({"queue/acme-online": {"card_quota": {H200: 4}}})
    ground.carry_out({"queue/acme-online": {"weight": 7}})
    back = changes.roll_back(change=change, access=ground.access("root"))
    assert back.edits == {"queue/acme-online": {"card_quota": {H200: 6}}}
    changes.apply(change=back, access=ground.access("root"))
    assert (ground.quota("acme-online"), ground.tree()["queue/acme-online"]["weight"]) == (6, 7)
    refused(
        lambda: changes.roll_back(change=QuotaChange.objects.get(pk=change.pk), access=ground.access("root")),
        "conflict",
    )


def test_an_import_is_the_difference_of_two_maps(ground):
    wanted = ground.tree()
    wanted["queue/acme-online"] = {**wanted["queue/acme-online"], "card_quota": {H200: 3}}
    del wanted["business-line/rival/research"], wanted["queue/rival-train"]
    ground.carry_out(patch_between(ground.tree(), wanted), source="import")
    assert ground.tree() == wanted


def test_old_changes_are_dropped_and_the_log_keeps_what_they_did(ground, settings):
    made = [ground.carry_out({"queue/acme-online": {"weight": weight}}) for weight in (2, 3, 4)]
    waiting = ground.draft({"queue/acme-online": {"weight": 9}})
    settings.RETENTION_CHANGES = 1
    tasks.sweep()
    assert set(QuotaChange.objects.values_list("pk", flat=True)) == {made[2].pk, waiting.pk}
    assert AuditEntry.objects.filter(action="quota_change.apply").count() == 3


def test_nobody_makes_the_changes_of_others_go_by_changes_of_their_own(ground, settings):
    made = [ground.carry_out({"queue/acme-online": {"weight": weight}}) for weight in (2, 3, 4)]
    settings.RETENTION_CHANGES = 6
    for cards in range(8):
        draft = ground.draft({"queue/acme-online": {"card_quota": {H200: 1}}}, who="owner")
        changes.cancel(change=draft, access=ground.access("owner"), reason="x")
        changes.apply(
            change=ground.draft({"queue/acme-online": {"card_quota": {H200: cards % 2 + 1}}}, who="owner"),
            access=ground.access("owner"),
        )
    changes.prune()
    kept = QuotaChange.objects.filter(pk__in=[change.pk for change in made]).count()
    others = QuotaChange.objects.exclude(pk__in=[change.pk for change in made])
    assert (kept, others.count(), others.filter(state="cancelled").count()) == (3, 3, 0)


def test_who_left_a_tenant_sees_no_open_draft_of_theirs_about_it_any_more(ground):
    open_one = ground.draft({"queue/acme-online": {"card_quota": {H200: 7}}}, who="owner")
    over = changes.cancel(
        change=ground.draft({"queue/acme-online": {"card_quota": {H200: 5}}}, who="owner"),
        access=ground.access("owner"),
        reason="no",
    )
    assert set(visible_changes(ground.access("owner"))) == {open_one, over}
    ground.users["owner"].memberships.update(tenant=Tenant.objects.get(slug="rival"))
    assert set(visible_changes(ground.access("owner"))) == {over}


def test_a_change_with_an_hour_waits_for_the_approval_that_is_demanded_since(ground):
    hour = timezone.now() + dt.timedelta(hours=1)
    edits = {"queue/acme-online": {"card_quota": {H200: 7}}}
    due, again = (ground.draft(edits, who="owner"), ground.draft(edits, who="owner"))
    for change in (due, again):
        assert changes.apply(change=change, access=ground.access("owner"), at=hour).state == "approved"
    ground.carry_out({"rules/cluster": {"approval_required": True}})
    assert changes.apply(change=again, access=ground.access("owner"), at=timezone.now()).state == "waiting"
    QuotaChange.objects.filter(pk=due.pk).update(apply_at=timezone.now())
    assert changes.apply_due(due.pk).state == "waiting"
    due.refresh_from_db()
    assert (due.state, due.approver_id, ground.quota("acme-online")) == ("waiting", None, 6)
