"""The medium demo in the database: 500 queues, 480 of them by one change, and history that says it is drawn."""

import datetime as dt
from functools import partial

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import F, Max, Min
from django.test import Client
from django.utils import timezone

from tidesched_web.accounts.models import PlatformRole, Project, Tenant, User
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes.models import ChangeObject, QuotaChange
from tidesched_web.changes.services import demo
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.clusters.services import note_clock
from tidesched_web.quota.models import NamespaceGrant, Queue
from tidesched_web.scheduling import drawn_history_services as drawn_history
from tidesched_web.scheduling import rollups
from tidesched_web.scheduling.models import Reclaim, ReclaimVictim, Session, TidePoint, UsageChange, UsageRollup

DAYS = 3


@pytest.fixture
def medium(db, monkeypatch):
    """A few days instead of ninety: each of them has as much as any other."""
    monkeypatch.setattr(drawn_history, "draw", partial(drawn_history.draw, days=DAYS))
    cluster, made = demo.ensure_demo(url="http://127.0.0.1:9", token="a-token", size="M")
    assert made
    return cluster


def test_it_has_500_queues_and_a_history_that_is_marked_as_drawn(medium):
    assert (Tenant.objects.count(), Queue.objects.count()) == (40, 500)
    assert Project.objects.count() == 11 + 34 * 9
    assert NamespaceGrant.objects.count() == 500
    assert CardType.objects.filter(cluster=medium, resource__gt="").count() == 20
    change = QuotaChange.objects.get(reason="The second hall of the medium demo.")
    assert (change.state, ChangeObject.objects.filter(change=change).count()) == ("applying", 480)
    assert AuditEntry.objects.filter(object_type="reclaim").count() == 0

    pairs = UsageChange.objects.values("queue", "card").distinct().count()
    assert pairs > 900
    hours = 24 * DAYS + medium.clock_anchor.hour
    assert UsageRollup.objects.filter(step_seconds=3600).count() == pairs * hours
    assert UsageRollup.objects.filter(step_seconds=86400).count() == pairs * DAYS
    two_days_ago = medium.clock_anchor - dt.timedelta(days=2)
    assert TidePoint.objects.filter(at__gte=two_days_ago).count() == 20 * 2 * 24 * 6
    assert TidePoint.objects.filter(at__lt=two_days_ago).count() == 20 * (hours - 47)
    assert Session.objects.count() == 6 * hours
    assert Reclaim.objects.count() == DAYS * drawn_history.RECLAIMS_A_DAY
    assert ReclaimVictim.objects.count() >= Reclaim.objects.count()
    assert set(Session.objects.values_list("trigger", flat=True)) == {"drawn"}
    assert set(Reclaim.objects.values_list("made_by", "audit_entry_id")) == {("drawn", None)}

    for model in (UsageChange, UsageRollup, TidePoint, Session):
        column = "now" if model is Session else "at"
        assert not model.objects.filter(**{f"{column}__gte": medium.clock_anchor}).exists()
    for point in TidePoint.objects.all():
        assert point.total == point.inference + point.training + point.foreign + point.idle
        assert min(point.inference, point.training, point.borrowed, point.idle) >= 0
    assert not any(one.allocated > one.quota or one.allocated < 0 for one in UsageChange.objects.all()[:5000])
    assert rollups.roll_up(medium.pk) == 0  # nothing is left to be rolled up

    admin = Client()
    admin.force_login(User.objects.create(username="looks", platform_role=PlatformRole.ADMIN))
    reclaim = Reclaim.objects.latest("pk")
    listed = admin.get("/clusters/demo/reclaims/").content.decode()
    assert listed.count("Drawn history") > 10
    one = admin.get(f"/clusters/demo/reclaims/{reclaim.pk}/").content.decode()
    assert "Drawn history" in one
    session = admin.get(f"/clusters/demo/sessions/{reclaim.session.number}/").content.decode()
    assert "drawn history" in session
    rest = admin.get("/api/v1/reclaims/?cluster=demo&made_by=drawn&limit=1").json()
    assert (rest["results"][0]["id"], rest["results"][0]["audit_entry"]) == (reclaim.pk, None)


def test_the_small_demo_has_two_days_of_use_that_are_marked_as_drawn_and_nothing_that_was_decided(db):
    cluster, made = demo.ensure_demo(url="http://127.0.0.1:9", token="a-token")
    assert made
    assert not Session.objects.exists()
    assert not Reclaim.objects.exists()
    for model in (UsageChange, UsageRollup, TidePoint):
        assert model.objects.exists()
        assert not model.objects.filter(at__gte=cluster.clock_anchor).exists()
    levels = TidePoint.objects.filter(card="NVIDIA-H200").aggregate(low=Min("inference"), high=Max("inference"))
    assert levels["high"] > 2 * levels["low"] > 0, "ebb and flood"

    admin = Client()
    admin.force_login(User.objects.create(username="looks", platform_role=PlatformRole.ADMIN))
    for address in ("/clusters/demo/", "/clusters/demo/queues/borealis-chat/"):
        page = admin.get(address).content.decode()
        assert "What lies before 2026-03-02 06:30 UTC was drawn for this demo, not measured." in page
    # The cluster was down for a while: what was measured before stays measured.
    later = cluster.clock() + dt.timedelta(hours=3)
    assert note_clock(cluster=cluster, virtual=later, wall=timezone.now(), rate=cluster.clock_rate)
    assert "before 2026-03-02 06:30 UTC was drawn" in admin.get("/clusters/demo/").content.decode()
    # Two days later there is nothing drawn in the picture any more.
    Cluster.objects.update(clock_wall_anchor=F("clock_wall_anchor") - dt.timedelta(minutes=21))
    assert "was drawn" not in admin.get("/clusters/demo/").content.decode()


def test_another_size_is_refused(db, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("a-token")
    monkeypatch.setenv("DEMO_SIZE", "XXL")
    with pytest.raises(CommandError, match="DEMO_SIZE='XXL': expected S or M"):
        call_command("demo_setup", url="http://127.0.0.1:9", token_file=str(tmp_path / "token"))
