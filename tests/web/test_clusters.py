"""Clusters: credentials are secret, the pause switch is decided by the database, policies are numbered."""

import io
import logging
import threading

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from tidesched_web.audit import key_services
from tidesched_web.audit.models import AuditEntry, SigningKey
from tidesched_web.clusters import credentials, selectors
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.addresses import checked_address
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.encryption import key_id
from tidesched_web.common.errors import DomainError

SECRET = "the-secret-token-of-east"


def make(name="east", **fields):
    return clusters.create(**{"name": name, "api_url": "https://10.0.0.1/", "token": SECRET, "actor": "root"} | fields)


@pytest.mark.django_db
def test_credentials_are_encrypted_and_appear_nowhere(caplog):
    with caplog.at_level(logging.DEBUG):
        cluster = make()
        clusters.set_connection(cluster=cluster, api_url="https://10.0.0.2", token=SECRET + "2", actor="root")
    stored = Cluster.objects.get()
    assert credentials.bearer_token(stored) == SECRET + "2"
    assert SECRET.encode() not in bytes(stored.credentials)
    assert SECRET not in str(list(AuditEntry.objects.values()))
    assert SECRET not in "".join(record.getMessage() for record in caplog.records if "django.db" not in record.name)
    entry = AuditEntry.objects.get(action="cluster.set_connection")
    assert entry.after == {"api_url": "https://10.0.0.2", "credentials_changed": True}


@pytest.mark.django_db
def test_keys_are_rotated_and_foreign_ones_noticed(settings):
    old, new = settings.TIDESCHED_KEYS[0], Fernet.generate_key().decode()
    make()
    settings.TIDESCHED_KEYS = [new, old]
    assert selectors.foreign_key_ids() == []
    assert clusters.rotate_credentials() == 1
    assert clusters.rotate_credentials() == 0
    assert Cluster.objects.get().credentials_key_id == key_id(new)
    settings.TIDESCHED_KEYS = [new]
    assert credentials.bearer_token(Cluster.objects.get()) == SECRET
    settings.TIDESCHED_KEYS = [old]
    assert selectors.foreign_key_ids() == [key_id(new)]
    with pytest.raises(DomainError, match=key_id(new)):
        credentials.bearer_token(Cluster.objects.get())
    settings.TIDESCHED_KEYS = []
    with pytest.raises(DomainError, match="set TIDESCHED_KEYS"):
        credentials.bearer_token(Cluster.objects.get())


@pytest.mark.django_db
def test_the_commands_rotate_and_refuse_foreign_keys(settings):
    old, new = settings.TIDESCHED_KEYS[0], Fernet.generate_key().decode()
    make()
    settings.TIDESCHED_KEYS = [new, old]
    out = io.StringIO()
    call_command("credentials", "rotate", stdout=out)
    call_command("credentials", "check", stdout=out)
    rotated = "1 credentials, 0 secrets of sign-in and 1 signing keys were encrypted anew"
    assert out.getvalue() == f"{rotated}\nevery stored credential can be read\n"

    settings.TIDESCHED_KEYS = [new]
    call_command("credentials", "check")
    key_services._ready.clear()  # as a new process: what signs the audit log is decrypted again
    assert key_services.signer().key_id == SigningKey.objects.get().key_id

    settings.TIDESCHED_KEYS = [old]
    with pytest.raises(CommandError, match=key_id(new)) as refused:
        call_command("credentials", "check")
    assert refused.value.returncode == 2


@pytest.mark.parametrize(
    "address", ["https://10.0.0.1:6443", "http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost"]
)
def test_addresses_of_clusters(address):
    assert checked_address(address + "/", simulated=False) == address


@pytest.mark.parametrize(
    "address",
    [
        "http://10.0.0.1",
        "ftp://east",
        "east",
        "",
        "https://",
        "https://ann:pw@east",
        "https://east?x=1",
        "https://a:b:c",
        "https://[",
        "https://169.254.169.254",
        "https://0.0.0.0",
    ],
)
def test_addresses_that_no_cluster_has(address):
    with pytest.raises(DomainError) as refused:
        checked_address(address, simulated=False)
    assert refused.value.extra["errors"][0]["pointer"] == "/api_url"
    assert "pw" not in refused.value.message


def test_the_simulated_cluster_may_be_another_host_of_the_same_network():
    assert checked_address("http://simcluster:8001", simulated=True) == "http://simcluster:8001"


@pytest.mark.django_db
def test_a_new_cluster_observes_and_a_name_is_there_once():
    assert make().mode == "observe"
    with pytest.raises(DomainError) as refused:
        make()
    assert refused.value.code == "already_exists"
    with pytest.raises(DomainError) as refused:
        make("west", mode="rule")
    assert refused.value.extra["errors"][0]["pointer"] == "/mode"


@pytest.mark.django_db(transaction=True)
def test_of_eight_who_pause_one_wins():
    cluster, start, won, refused = make(), threading.Barrier(8), [], []

    def pause(index):
        try:
            start.wait()
            clusters.pause(cluster=Cluster.objects.get(pk=cluster.pk), actor=f"person {index}", reason="fire")
            won.append(f"person {index}")
        except DomainError as error:
            refused.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=pause, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [Cluster.objects.get().paused_by] == won
    assert refused == ["conflict"] * 7
    assert AuditEntry.objects.filter(action="cluster.pause").count() == 1


POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: priority\n'


@pytest.mark.django_db
def test_a_policy_is_parsed_numbered_and_waits_for_its_release():
    cluster = make()
    first = clusters.set_policy(cluster=cluster, text=POLICY, actor="root", released=True)
    assert clusters.set_policy(cluster=cluster, text=POLICY, actor="root") == first
    second = clusters.set_policy(cluster=cluster, text=POLICY + "  - name: gang\n", actor="root", reason="gangs")
    assert (first.number, second.number, second.released_at) == (1, 2, None)
    assert selectors.ruling_policy(cluster) == second
    with pytest.raises(DomainError) as refused:
        clusters.set_policy(cluster=cluster, text=POLICY.replace("priority", "priorty"), actor="root")
    assert refused.value.code == "invalid_policy"
    assert "priorty" in str(refused.value.extra["policy_error"])
    assert cluster.policies.count() == 2
    assert clusters.release_policy(revision=second, actor="root")
    assert not clusters.release_policy(revision=second, actor="root")
    assert (
        clusters.set_settings(cluster=cluster, values={"mode": "schedule"}, actor="root", reason="go").mode
        == "schedule"
    )
