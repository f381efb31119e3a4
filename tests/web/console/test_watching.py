"""The pages that show what others did in a cluster: drift, alerts with the bell, observed evictions, an API away."""

from __future__ import annotations

import csv
import datetime as dt
import re

import pytest
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console import world_drift
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Drift, DriftLook
from tidesched_web.scheduling.models import Alert, Reclaim

pytestmark = pytest.mark.django_db

DRIFT = "/clusters/demo/drift/"


@pytest.fixture
def world(world) -> story.World:
    world_drift.meddled(world)
    return world


def shown(user, path, status=200):
    response = client_of(user).get(path)
    assert response.status_code == status
    return response.content.decode()


def test_drift_is_told_to_whose_it_is_and_decided_by_an_admin(world) -> None:
    page = shown(world.admin, DRIFT)
    assert "3 objects differ from what was sent" in page
    for text in ("search-training", "Quota of H200", "kubectl-edit", "is gone", "legacy-batch", "A trial until Friday"):
        assert text in page, text
    assert "cannot be adopted" in page  # a label
    assert '<span class="nav-count count-badge" title="Objects that differ from what was sent">3</span>' in page
    for user, sees in ((world.member, "search-training"), (world.stranger, "research-training")):
        page = shown(user, DRIFT)
        rows = {row["name"] for row in csv.DictReader(shown(user, f"{DRIFT}?format=csv").lstrip("\ufeff").splitlines())}
        assert rows == {sees}
        assert "legacy-batch" not in page
        assert "pc-normal" not in page
    assert shown(world.admin, f"{DRIFT}?state=ignored").count('name="drift"') == 1
    shown(world.newcomer, DRIFT, 404)

    row = Drift.objects.get(name="search-training")
    decide = f"{DRIFT}decide/"
    assert client_of(world.auditor).post(decide, {"drift": row.pk, "act": "ignore", "reason": "x"}).status_code == 403
    admin = client_of(world.admin)
    refused = admin.post(decide, {"drift": row.pk, "act": "ignore", "reason": " "})
    assert refused.status_code == 400
    assert "Say why" in refused.content.decode()
    assert admin.post(decide, {"act": "ignore", "reason": "x"}).status_code == 400
    assert f'name="seen-{row.pk}"' in shown(world.admin, DRIFT)
    other = {"drift": row.pk, f"seen-{row.pk}": "of-before", "act": "ignore", "reason": "kept by the page"}
    stale = admin.post(decide, other)
    assert stale.status_code == 412
    assert "Queue search-training was changed in the cluster since you opened this page" in stale.content.decode()
    assert "kept by the page" in stale.content.decode()
    assert Drift.objects.get(pk=row.pk).state == "open"
    sent = {"drift": row.pk, f"seen-{row.pk}": row.digest, "act": "ignore", "reason": "agreed"}
    done = admin.post(decide, sent, follow=True)
    assert "1 object is left as it is" in done.content.decode()
    assert AuditEntry.objects.get(action="drift.ignore").tenant_ids == [world.queues["search-training"].tenant_id]
    gone = Drift.objects.get(name="maps-route-inference")
    assert admin.post(decide, {"drift": gone.pk, "act": "adopt", "reason": "x"}).status_code == 409


def test_the_times_of_a_drift_are_by_one_clock_which_is_named(world) -> None:
    """The cluster notes who changed a field by its own clock, which a simulated cluster's is not the wall's."""
    Cluster.objects.filter(pk=world.cluster.pk).update(clock_rate=60.0)
    row = Drift.objects.get(name="search-training")
    found = Cluster.objects.get(pk=world.cluster.pk).clock(row.found_at)
    page = shown(world.admin, DRIFT)
    part = " ".join(page.partition(f'id="drift-{row.pk}"')[2].partition("</section>")[0].split())
    times = re.findall(r"<time [^>]*title=\"([^\"]+)\"", part)
    assert times
    assert all(title.endswith("by the cluster&#x27;s clock") for title in times)
    assert any(title.startswith(f"{found:%Y-%m-%d %H:%M:%S}") for title in times)
    assert "times by the cluster's clock" in page
    (said,) = [
        one for one in csv.DictReader(shown(world.admin, f"{DRIFT}?format=csv").lstrip("\ufeff").splitlines())
        if one["field"] == "spec.weight"
    ]  # fmt: skip
    assert abs(dt.datetime.fromisoformat(said["found_at"]) - found) < dt.timedelta(seconds=1)


def test_drift_and_its_alert_are_as_old_by_the_same_clock(world) -> None:
    Cluster.objects.filter(pk=world.cluster.pk).update(clock_rate=60.0)
    row = Drift.objects.get(name="search-training")
    Alert.objects.filter(cluster=world.cluster).update(raised_at=row.found_at, resolved_at=None)
    cluster = Cluster.objects.get(pk=world.cluster.pk)
    found = f"{cluster.clock(row.found_at):%Y-%m-%d %H:%M:%S}"

    def titles(path: str) -> list[str]:
        page = shown(world.admin, path).partition('id="live"')[2]
        return [title for title in re.findall(r"<time [^>]*title=\"([^\"]+)\"", page) if title.startswith(found)]

    alerts = titles("/clusters/demo/alerts/")
    assert alerts
    assert set(alerts) <= set(titles(DRIFT))
    assert "Times by the cluster's clock" in shown(world.admin, "/clusters/demo/alerts/")
    assert not titles("/alerts/"), "alerts of several clusters have the real clock"
    assert "Times by the real clock" in shown(world.admin, "/alerts/")


def test_where_every_queue_is_decided_on_here_that_is_said_with_the_way_to_adopt(world) -> None:
    DriftLook.objects.update(unmanaged=[])
    page = shown(world.admin, DRIFT)
    assert "Every queue of the cluster is decided on here" in page
    assert 'href="/clusters/demo/adoption/"' in page
    assert "Every queue of the cluster" not in shown(world.member, DRIFT)


def test_an_alert_is_looked_after_counted_and_linked(world) -> None:
    page = shown(world.admin, "/alerts/")
    assert "Chain platform of the audit log does not hold or cannot be verified." in page
    assert "Open the verification" in page
    assert "The nodes come on Monday." in page
    waiting = Alert.objects.filter(resolved_at__isnull=True, acknowledged_at__isnull=True)
    assert f'<span class="count-badge">{waiting.count()}</span>' in page
    assert "audit log" not in shown(world.member, "/alerts/").split("<main")[1]
    platform = Alert.objects.get(cluster__isnull=True)
    assert client_of(world.member).post(f"/alerts/{platform.pk}/acknowledge/").status_code == 404
    assert client_of(world.auditor).post(f"/alerts/{platform.pk}/acknowledge/").status_code == 403
    own = Alert.objects.get(code="drift")
    assert client_of(world.admin).post(f"/alerts/{own.pk}/acknowledge/").status_code == 404  # it is a cluster's
    for alert, path in ((platform, "/alerts"), (own, "/clusters/demo/alerts")):
        before = waiting.count()
        client_of(world.admin).post(f"{path}/{alert.pk}/acknowledge/", {"note": "seen"})
        alert.refresh_from_db()
        assert (alert.state, alert.acknowledged_by, alert.note) == ("acknowledged", "admin", "seen")
        assert waiting.count() == before - 1
    assert AuditEntry.objects.filter(action="alert.acknowledge").count() == 2
    client_of(world.admin).post(f"/alerts/{platform.pk}/acknowledge/")
    assert AuditEntry.objects.filter(action="alert.acknowledge").count() == 2


def test_an_alert_that_is_looked_after_is_handed_back(world) -> None:
    own = Alert.objects.get(code="drift")
    waiting = Alert.objects.filter(resolved_at__isnull=True, acknowledged_at__isnull=True)
    path, before = f"/clusters/demo/alerts/{own.pk}/acknowledge/", waiting.count()
    admin, back = client_of(world.admin), {"act": "hand-back"}
    said = admin.post(path, back, follow=True).content.decode()
    assert "It was open already, or it has ended." in said
    admin.post(path, {"note": "seen"})
    assert waiting.count() == before - 1
    assert 'name="act" value="hand-back"' in shown(world.admin, "/clusters/demo/alerts/")
    assert 'value="hand-back"' not in shown(world.auditor, "/clusters/demo/alerts/")
    assert client_of(world.auditor).post(path, back).status_code == 403
    assert "it is open again" in admin.post(path, back, follow=True).content.decode()
    own.refresh_from_db()
    assert (own.state, own.acknowledged_by, own.note, waiting.count()) == ("open", "", "", before)
    assert AuditEntry.objects.get(action="alert.hand_back").object_id == str(own.pk)
    assert "Alert: handed back" in shown(world.admin, "/audit/")


def test_an_alert_names_no_object_and_no_note_of_others_to_a_tenants_reader(world) -> None:
    Alert.objects.create(
        cluster=world.cluster, key="push_refused", severity="warning", code="push_refused",
        message="Queue maps-route-inference: denied", raised_at=timezone.now(),
        numbers={"objects": 1, "object": "Queue maps-route-inference", "said": "denied"},
    )  # fmt: skip
    alerts = "/clusters/demo/alerts/"
    assert "the push of Queue maps-route-inference" in shown(world.auditor, alerts)
    assert "The nodes come on Monday." in shown(world.auditor, alerts)
    page = shown(world.member, alerts)
    assert "The cluster refuses something that is sent to it." in page
    assert "maps-route-inference" not in page
    assert "looks after it" in page
    assert "The nodes come on Monday." not in page


def test_evictions_by_others_stand_beside_the_own_decision(world) -> None:
    page = shown(world.admin, "/clusters/demo/reclaims/?made_by=volcano")
    assert page.count("<tr>") == 2  # the table's head, and one reclaim
    assert "Evicted by others" in page
    assert "TideSched at the same moments" in page
    assert "1 of 2 observed reclaims can be compared" in page
    named, unknown = world.reclaims[-2:]
    page = shown(world.admin, f"/clusters/demo/reclaims/{named.pk}/")
    assert "At that moment TideSched would have taken 1 gang." in page
    assert "foundation/base-lap2-001" in page
    assert f"/clusters/demo/sessions/{named.instead['session']}/" in page
    assert "foundation" not in shown(world.member, f"/clusters/demo/reclaims/{named.pk}/").split("<main")[1]
    numbers = {"resource": "NVIDIA-H200", "requested": 8.0, "free": 5.0}
    reason = {"code": "WaitingForCards", "numbers": numbers, "message": "8 cards are asked for."}
    Reclaim.objects.filter(pk=named.pk).update(instead=named.instead | {"found": "waits", "reason": reason})
    page = shown(world.admin, f"/clusters/demo/reclaims/{named.pk}/")
    assert "would have let it wait: Waits for cards · Needs 8 × H200, but only 5 are free" in " ".join(page.split())
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    page = shown(world.admin, f"/clusters/demo/reclaims/{named.pk}/")
    assert "需要 8 × H200，但集群中空闲的仅有 5。" in page
    assert "are asked for" not in page
    User.objects.filter(pk=world.admin.pk).update(language="")
    page = shown(world.admin, f"/clusters/demo/reclaims/{unknown.pk}/")
    assert "Unknown: no event and no nominated pod says for whom." in page
    assert "no session of TideSched had seen these pods running" in page


def test_every_page_says_when_the_api_server_is_away(world) -> None:
    assert "does not answer" not in shown(world.admin, "/clusters/demo/gangs/")
    world_drift.away(world)
    for path in ("/clusters/demo/gangs/", "/clusters/demo/", DRIFT):
        page = shown(world.admin, path)
        assert "The API server does not answer." in page
        assert "goes on by itself once it answers" in page
        assert "connection refused" in page
    assert "connection refused" not in shown(world.member, DRIFT)
