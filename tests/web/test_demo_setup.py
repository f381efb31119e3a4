"""`manage.py demo_setup`: made once, pushed each time, and then the demo's day begins."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.cluster.servers import SimulatedServer
from tests.waiting import until
from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.quota.models import CardQuota, NamespaceGrant, Queue


@pytest.fixture
def demo_server(tmp_path):
    server = SimulatedServer(tmp_path, "--stage", "demo", rate=600)
    server.start()
    yield server
    if server.running:
        server.kill()


def setup(server):
    out = StringIO()
    call_command("demo_setup", url=server.url, token_file=str(server.token_file), stdout=out)
    return out.getvalue()


def test_the_day_begins_once_the_queues_are_pushed(db, demo_server):
    client = demo_server.client()
    assert client.get("/tidesched/clock")["rate"] == 0
    assert client.get(POD.path())["items"] == []
    assert "made" in setup(demo_server)
    until(lambda: client.get("/tidesched/clock")["rate"] == 600)
    until(lambda: client.get(POD.path())["items"])
    until(lambda: client.get(POD_GROUP.path())["items"])

    queues = {item["metadata"]["name"]: item for item in client.get(QUEUE.path())["items"]}
    assert set(queues) == set(Queue.objects.values_list("name", flat=True))
    assert len(queues) >= 20
    chat = queues["borealis-chat"]
    assert chat["metadata"]["annotations"]["volcano.sh/card.quota"] == '{"NVIDIA-H200":56}'
    assert chat["metadata"]["labels"] == {"tidesched.io/tenant": "borealis", "tidesched.io/project": "chat"}
    assert {entry["manager"] for entry in chat["metadata"]["managedFields"]} == {"tidesched"}
    classes = {item["metadata"]["name"]: item["value"] for item in client.get(PRIORITY_CLASS.path())["items"]}
    assert classes == {"pc-high": 80000, "pc-medium": 60000, "pc-normal": 40000, "pc-low": 20000}


def test_the_intent_is_whole_and_audited(db, demo_server):
    setup(demo_server)
    cluster = Cluster.objects.get(slug="demo")
    assert (cluster.mode, cluster.simulated) == ("schedule", True)
    assert Tenant.objects.count() == 6
    assert Project.objects.count() == 11
    cards = {card.name: card.parent and card.parent.name for card in CardType.objects.filter(cluster=cluster)}
    assert cards["NVIDIA-H800/mps-80g*1/2"] == "NVIDIA-H800"
    assert cards["NVIDIA-A100/mig-1g.10gb-mixed"] == "NVIDIA-A100"
    assert set(Queue.objects.values_list("sync_state", flat=True)) == {"in_step"}
    assert NamespaceGrant.objects.count() >= Queue.objects.count()
    assert CardQuota.objects.filter(tenant__slug="borealis", service_type="inference").count() == 2
    assert AuditEntry.objects.filter(action="queue.create").count() == Queue.objects.count()


def test_what_somebody_changed_in_the_cluster_does_not_keep_it_from_starting(db, demo_server):
    setup(demo_server)
    client, path = demo_server.client(), QUEUE.path(name="borealis-chat")
    query = {"fieldManager": "kubectl-edit"}
    assert client.send("PATCH", path, {"spec": {"weight": 9}}, query=query, content_type=MERGE_PATCH).done
    assert "there already" in setup(demo_server)
    assert client.get(path)["spec"]["weight"] == 9


def test_again_it_changes_nothing_and_keeps_what_people_set(db, demo_server):
    setup(demo_server)
    Queue.objects.filter(name="borealis-chat").update(weight=7)
    before = AuditEntry.objects.count()
    writes = len(demo_server.writes())
    assert "there already" in setup(demo_server)
    assert AuditEntry.objects.count() == before
    assert Queue.objects.get(name="borealis-chat").weight == 7
    again = demo_server.writes()[writes:]
    assert {row["verb"] for row in again if row["manager"] == "tidesched"} == {"apply"}
    pushed = KubernetesClient.for_cluster(Cluster.objects.get(slug="demo")).get(QUEUE.path(name="borealis-chat"))
    assert pushed["spec"]["weight"] == 7


def test_without_a_cluster_it_says_so(db, settings):
    settings.SIMCLUSTER_URL = settings.SIMCLUSTER_TOKEN_FILE = ""
    with pytest.raises(CommandError, match="Where is the simulated cluster"):
        call_command("demo_setup", url="", token_file="")


def test_the_stored_clock_follows_the_clusters(db, demo_server):
    import datetime as dt

    from django.utils import timezone

    from tidesched_web.clusters import services as clusters

    setup(demo_server)
    cluster = Cluster.objects.get(slug="demo")
    wall = timezone.now()
    virtual = dt.datetime(2026, 3, 4, 12, 0, tzinfo=dt.UTC)
    assert clusters.note_clock(cluster=cluster, virtual=virtual, wall=wall, rate=600.0)
    cluster.refresh_from_db()
    assert cluster.clock(wall) == virtual
    later = wall + dt.timedelta(seconds=10)
    assert not clusters.note_clock(
        cluster=cluster, virtual=virtual + dt.timedelta(seconds=6010), wall=later, rate=600.0
    )
    assert clusters.note_clock(cluster=cluster, virtual=virtual, wall=later, rate=600.0)


def test_what_is_edited_later_goes_with_the_next_push(db, demo_server):
    from tests import quota_writes
    from tidesched_web.quota.tasks import push_pending

    setup(demo_server)
    client = demo_server.client()
    queue = Queue.objects.get(name="borealis-chat")
    quota_writes.set_card_quota(cluster=queue.cluster, owner=queue, cards={"NVIDIA-H200": 40}, actor="root")
    queue.refresh_from_db()
    assert queue.sync_state == "pending"
    push_pending()
    queue.refresh_from_db()
    assert (queue.sync_state, queue.live_state, queue.pushed_version) == ("in_step", "Open", queue.version)
    live = client.get(QUEUE.path(name="borealis-chat"))
    assert live["metadata"]["annotations"]["volcano.sh/card.quota"] == '{"NVIDIA-H200":40}'

    quota_writes.ensure_priority_class(cluster=queue.cluster, name="pc-batch", value=10_000, actor="root")
    push_pending()
    assert client.get(PRIORITY_CLASS.path(name="pc-batch"))["value"] == 10_000

    demo_server.kill()
    quota_writes.set_card_quota(cluster=queue.cluster, owner=queue, cards={"NVIDIA-H200": 41}, actor="root")
    push_pending()
    queue.refresh_from_db()
    assert queue.sync_state == "pending"
    assert "refused" in queue.sync_error
    demo_server.start()
    push_pending()
    queue.refresh_from_db()
    assert queue.sync_state == "in_step"


def test_a_tide_plan_is_pushed_by_what_holds_now_and_taken_back_at_its_end(db, demo_server):
    from tests.quota_writes import write_tide_plan
    from tidesched_web.quota.tasks import push_pending

    setup(demo_server)
    client = demo_server.client()
    queue = Queue.objects.get(name="borealis-chat")
    layer = {"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "start": "00:00", "end": "24:00"}
    layer["quota"] = {"borealis-chat": {"NVIDIA-H200": {"add": -6}}}

    def told():
        push_pending()
        live = client.get(QUEUE.path(name="borealis-chat"))
        return live["metadata"]["annotations"]["volcano.sh/card.quota"]

    def plan(enabled):
        document = {"enabled": enabled, "layers": [layer]}
        write_tide_plan(cluster=queue.cluster, name="always", document=document, actor="root")

    plan(True)
    assert told() == '{"NVIDIA-H200":50}'
    queue.refresh_from_db()
    assert (queue.sync_state, queue.tide) == ("in_step", {"NVIDIA-H200": 50})
    assert CardQuota.objects.get(queue=queue).cards == 56
    version = client.get(QUEUE.path(name="borealis-chat"))["metadata"]["resourceVersion"]
    told()
    assert client.get(QUEUE.path(name="borealis-chat"))["metadata"]["resourceVersion"] == version, "nothing to say"
    plan(False)
    assert told() == '{"NVIDIA-H200":56}'
    queue.refresh_from_db()
    assert queue.tide == {}
