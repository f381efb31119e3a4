"""What would help a gang, as a draft in the editor: under tide plans, below full ceilings, and for whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.quota_writes import create_queue
from tests.web.console.cast import A100, H200, L40S
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import BusinessLine, Membership, Tenant
from tidesched_web.accounts.selectors import access_of
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.room_above import with_room_above
from tidesched_web.changes.selectors import Surroundings, reading_of, surroundings_of
from tidesched_web.changes.tree_check import ratios_of, tree_of
from tidesched_web.quota.models import CardQuota, TidePlan
from tidesched_web.quota.tide import WEEKDAYS
from tidesched_web.quota.tree_rules import CPU, ROOT, ceiling, claims
from tidesched_web.scheduling.models import QueueUsage
from tidesched_web.workloads.models import Gang, GangRemedy
from tidesched_web.workloads.remedies import basis

pytestmark = pytest.mark.django_db


def test_trying_it_opens_the_editor_with_the_edit_as_a_draft(world) -> None:
    path = f"/clusters/demo/gangs/{world.gangs['search/rank-lap2-013'].pk}/try/"
    for who, status in (("member", 403), ("auditor", 403), ("stranger", 404), ("newcomer", 404)):
        assert client_of(getattr(world, who)).post(path).status_code == status
    assert not QuotaChange.objects.exists()
    Membership.objects.filter(user=world.member).update(role="admin")
    answer = client_of(world.member).post(path)
    draft = QuotaChange.objects.get()
    assert answer["Location"] == f"/clusters/demo/quota/edit/?change={draft.pk}"
    now = CardQuota.objects.get(queue=world.queues["search-training"], card_type__name=A100).cards
    assert draft.edits == {"queue/search-training": {"card_quota": {A100: now + 16}}}
    assert draft.state == "draft"
    assert client_of(world.member).post(path)["Location"] == answer["Location"], "the same draft is gone on with"
    assert client_of(world.member).get(path).status_code == 405


def test_the_draft_raises_what_stands_above_where_all_of_it_is_given_out(world) -> None:
    """Else the editor opens with sums that do not fit, and the change cannot be applied."""
    gang, queue = world.gangs["search/rank-lap2-013"], world.queues["search-rank-inference"]
    remedy = {"change": "quota", "queue": queue.name, "card": H200, "by": 2.0, "verified": True}
    Gang.objects.filter(pk=gang.pk).update(queue=queue, queue_name=queue.name)
    GangRemedy.objects.filter(gang=gang).update(remedy=remedy, basis=basis(gang.reason_code, gang.reason_numbers))
    client = client_of(world.admin)
    answer = client.post(f"/clusters/demo/gangs/{gang.pk}/try/")
    draft = QuotaChange.objects.get()
    assert draft.plan["errors"] == []
    edited = {key.partition("/")[0]: patch for key, patch in draft.edits.items()}
    assert edited["queue"] == {"card_quota": {H200: 18}}
    assert edited["project"] == {"quota": {"inference": {"card_quota": {H200: 18}}}}
    assert "raises the quotas above queue search-rank-inference" in client.get(answer["Location"]).content.decode()


def test_the_draft_takes_from_a_queue_that_does_not_use_it_where_the_hardware_is_given_out(world) -> None:
    gang, name = world.gangs["search/rank-lap2-013"], "foundation-training"
    reading = reading_of(world.cluster)
    around = surroundings_of(world.cluster, reading)
    tree = tree_of(reading.documents, around.hardware, ratios_of(reading.documents))
    given = sum(claims(tree, "training")[ROOT][A100].values())
    by = max(0, ceiling(tree, ROOT, "training", A100) - given) + 2
    remedy = {"change": "quota", "queue": name, "card": A100, "by": float(by), "verified": True}
    Gang.objects.filter(pk=gang.pk).update(queue=world.queues[name], queue_name=name)
    GangRemedy.objects.filter(gang=gang).update(remedy=remedy, basis=basis(gang.reason_code, gang.reason_numbers))
    client = client_of(world.admin)
    answer = client.post(f"/clusters/demo/gangs/{gang.pk}/try/")
    draft = QuotaChange.objects.get()
    assert draft.plan["errors"] == []
    own = reading.documents[f"queue/{name}"]["card_quota"].get(A100, 0)
    assert draft.edits.pop(f"queue/{name}") == {"card_quota": {A100: own + by}}
    gives = next(key for key in draft.edits if key.startswith("queue/"))
    left, used = draft.edits[gives]["card_quota"][A100], around.in_use.get(gives[6:], {}).get(A100, 0)
    assert left == reading.documents[gives]["card_quota"][A100] - 2 >= used
    assert f"from a queue that does not use it: {gives[6:]}." in client.get(answer["Location"]).content.decode()


def _remedy_for(world, queue: str, by: float) -> str:
    """A gang that waits for ``by`` more of the queue's quota of H200: where its draft is made."""
    gang, remedy = world.gangs["search/rank-lap2-013"], {"change": "quota", "queue": queue, "card": H200, "by": by}
    Gang.objects.filter(pk=gang.pk).update(queue=world.queues[queue], queue_name=queue)
    GangRemedy.objects.filter(gang=gang).update(
        remedy=remedy | {"verified": True},
        basis=basis(gang.reason_code, gang.reason_numbers),
    )
    return f"/clusters/demo/gangs/{gang.pk}/try/"


def _plan_all_day(world, name: str, queue: str, position: int = 0, **amount: int) -> TidePlan:
    layer = {
        "name": "all day", "days": list(WEEKDAYS), "start": "00:00", "end": "24:00", "quota": {queue: {H200: amount}},
    }  # fmt: skip
    return TidePlan.objects.create(
        cluster=world.cluster,
        name=name,
        enabled=True,
        position=position,
        time_zone="UTC",
        layers=[layer],
        exceptions={},
    )


def test_where_a_tide_plan_sets_the_quota_the_draft_changes_the_plan(world) -> None:
    """The base counts for nothing while the layer is open, so more of it would not help."""
    name = "search-rank-inference"
    plan = _plan_all_day(world, "days", name, set=6)
    _plan_all_day(world, "more", name, position=1, add=-1)
    path = _remedy_for(world, name, 2.0)
    client = client_of(world.admin)
    answer = client.post(path)
    draft = QuotaChange.objects.get()
    assert answer["Location"] == f"/clusters/demo/changes/{draft.pk}/"
    (key,) = draft.edits
    assert key == "tide-plan/days"
    assert draft.edits[key]["layers"] == [{**plan.layers[0], "quota": {name: {H200: {"set": 8}}}}]
    assert "The tide plan days sets this quota now" in client.get(answer["Location"]).content.decode()
    QuotaChange.objects.all().delete()
    Membership.objects.filter(user=world.member).update(role="admin")
    member = client_of(world.member)
    page = member.get(member.post(path)["Location"]).content.decode()
    assert "Ask a platform admin to change the plan." in page
    assert not QuotaChange.objects.exists()


def test_where_a_tide_plan_takes_from_the_quota_the_draft_raises_the_base_by_more(world) -> None:
    name = "search-rank-inference"
    _plan_all_day(world, "less", name, add=-20)  # of 16: nothing is left
    client_of(world.admin).post(_remedy_for(world, name, 2.0))
    assert QuotaChange.objects.get().edits[f"queue/{name}"] == {"card_quota": {H200: 22}}


def test_where_the_layer_is_closed_or_another_card_is_set_the_draft_raises_the_base(world) -> None:
    name = "search-rank-inference"
    plan = _plan_all_day(world, "days", name, set=6)
    base = CardQuota.objects.get(queue=world.queues[name], card_type__name=H200).cards
    path, client = _remedy_for(world, name, 2.0), client_of(world.admin)
    for layer in (
        plan.layers[0] | {"start": "01:00", "end": "02:00"},  # the cluster's clock says 20:15
        plan.layers[0] | {"days": [day for day in WEEKDAYS if day != "wed"]},
        plan.layers[0] | {"quota": {name: {L40S: {"set": 6}}}},
    ):
        TidePlan.objects.filter(pk=plan.pk).update(layers=[layer])
        client.post(path)
        assert QuotaChange.objects.get().edits[f"queue/{name}"] == {"card_quota": {H200: base + 2}}, layer
        QuotaChange.objects.all().delete()
    TidePlan.objects.filter(pk=plan.pk).update(layers=plan.layers, enabled=False)
    client.post(path)
    assert QuotaChange.objects.get().edits[f"queue/{name}"] == {"card_quota": {H200: base + 2}}, "a plan at rest"


def test_of_two_layers_that_set_the_figure_the_one_that_counts_is_changed(world) -> None:
    """The plan of the higher position applies last; what a layer below it sets has no effect."""
    name = "search-rank-inference"
    _plan_all_day(world, "early", name, position=1, set=4)
    later = _plan_all_day(world, "later", name, position=2, set=6)
    _plan_all_day(world, "less", name, position=3, add=-7)  # of 6: nothing is left
    client_of(world.admin).post(_remedy_for(world, name, 2.0))
    draft = QuotaChange.objects.get()
    assert draft.edits == {"tide-plan/later": {"layers": [{**later.layers[0], "quota": {name: {H200: {"set": 9}}}}]}}, (
        "two are seen of nine, since the layer above takes seven"
    )


def _ceilings(world, **limits: int) -> None:
    """What tenants may have of H200 for training."""
    card = world.cluster.card_types.get(name=H200)
    for slug, cards in limits.items():
        CardQuota.objects.update_or_create(
            cluster=world.cluster, card_type=card, service_type="training", tenant=Tenant.objects.get(slug=slug),
            defaults={"cards": cards},
        )  # fmt: skip


def test_a_platform_admins_draft_raises_the_tenant_above_a_business_line(world) -> None:
    """A business line has no quota of its own: what limits its queue is the tenant, and all of it is given out."""
    _ceilings(world, search=24)
    CardQuota.objects.filter(queue=world.queues["research-training"], card_type__name=H200).update(cards=10)
    CardQuota.objects.filter(queue=world.queues["foundation-training"], card_type__name=H200).update(cards=4)
    _ceilings(world, research=10)
    client = client_of(world.admin)
    answer = client.post(_remedy_for(world, "search-training", 2.0))
    draft = QuotaChange.objects.get()
    assert draft.plan["errors"] == []
    assert draft.edits == {
        "queue/search-training": {"card_quota": {H200: 26}},
        "tenant/search": {"quota": {"training": {"card_quota": {H200: 26}}}},
    }
    page = client.get(answer["Location"]).content.decode()
    assert "raises the quotas above queue search-training too, since they are given out whole: Search." in page


def test_a_tenant_admins_draft_takes_from_a_queue_of_the_tenant_and_never_raises_the_tenant(world) -> None:
    Membership.objects.filter(user=world.member).update(role="admin")
    _ceilings(world, search=26)
    tenant, line = Tenant.objects.get(slug="search"), BusinessLine.objects.get(slug="search-training")
    spare = create_queue(
        cluster=world.cluster, name="search-spare", service_type="training", business_line=line,
        card_quota={H200: 2}, actor="tests",
    )  # fmt: skip
    assert spare.tenant == tenant
    client = client_of(world.member)
    client.post(_remedy_for(world, "search-training", 2.0))
    draft = QuotaChange.objects.get()
    assert draft.edits == {
        "queue/search-training": {"card_quota": {H200: 26}},
        "queue/search-spare": {"card_quota": {H200: 0}},
    }
    assert draft.plan["errors"] == []
    QuotaChange.objects.all().delete()
    # Where none of the tenant's queues can spare it, the draft asks for more than there is and says so.
    QueueUsage.objects.create(
        queue=spare, card=H200, at=world.cluster.clock(), quota=2000, allocated=1000, inqueue=0, elastic=0
    )
    client.post(_remedy_for(world, "search-training", 2.0))
    draft = QuotaChange.objects.get()
    assert draft.edits == {"queue/search-training": {"card_quota": {H200: 26}}}
    assert draft.plan["errors"] != []


def test_what_is_promised_to_a_gang_is_not_taken_and_of_cpu_none_is(world) -> None:
    reading = reading_of(world.cluster)
    documents = {
        "queue/a": {"service_type": "training", "card_quota": {A100: 9}, "cpu_milli": 90_000},
        "queue/b": {"service_type": "training", "card_quota": {A100: 5}, "cpu_milli": 10_000},
        "queue/c": {"service_type": "training", "card_quota": {A100: 2}, "cpu_milli": 1000},
    }
    around = Surroundings(
        hardware={A100: 16, CPU: 101_000}, ratios={"training": 1.0, "inference": 1.0},
        in_use={"a": {A100: 2.0}}, promised={"a": {A100: 4.0}}, live_gangs={},
    )  # fmt: skip
    tree = replace(reading, documents={**documents, "rules/cluster": reading.documents["rules/cluster"]})
    access = access_of(world.admin)
    room = with_room_above(tree, around, {"queue/c": {"card_quota": {A100: 4}}}, access)
    assert room.gives == ("queue/b",), "a holds 9, uses 2 and has promised 4"
    room = with_room_above(tree, around, {"queue/c": {"cpu_milli": 2000}}, access)
    assert room.gives == ()
