from typing import Any

from django.utils import timezone

from tidesched_web.accounts.models import User
from tidesched_web.clusters import connection_services
from tidesched_web.clusters.connection_selectors import connection_test_by_id, same_server
from tidesched_web.clusters.credentials import connection_of
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection
from tidesched_web.clusters.kubernetes.installation_lease import installation_id
from tidesched_web.clusters.kubernetes.probe import FAILED, Finding, Probe, unusable
from tidesched_web.clusters.kubernetes.verbs import VOLCANO_CONF
from tidesched_web.clusters.models import ConnectionTest
from tidesched_web.common import live
from tidesched_web.common.errors import DomainError
from tidesched_web.jobs import services as jobs
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.jobs.running import Running


def start_test(test: ConnectionTest, *, owner: User | None, actor: str) -> Job:
    """Let a worker do the test. The job knows its number only: the connection stays where it is, encrypted."""
    job = jobs.enqueue(
        kind=JobKind.CONNECTION_TEST,
        owner=owner,
        actor=actor,
        params={"test": test.pk},
        cluster=test.cluster,
        subject=f"connection:{test.pk}",
    )
    connection_services.note_job(test=test, job_id=job.pk)
    return job


def test_connection(running: Running) -> dict[str, Any]:
    test = connection_test_by_id(int(running.params["test"]))
    if test is None:
        raise DomainError("not_found", "The test is gone.")
    findings: list[dict[str, Any]] = []
    try:
        for percent, found in _probe(_connection(test), test):
            findings = [one.to_json() for one in found]
            connection_services.note_findings(test=test, percent=percent, findings=findings, finished=False)
            running.report(percent / 100)
    except BadConnection as error:
        findings = [unusable(error).to_json()]
    except DomainError:
        findings = [Finding("credentials", "gone", FAILED, {}).to_json()]
    connection_services.note_findings(test=test, percent=100, findings=findings, finished=True)
    if test.cluster_id is not None:
        about = live.About("cluster", str(test.cluster_id), "connection_test")
        live.publish("clusters", test.cluster_id, f"test.{test.pk}", cluster_id=test.cluster_id, about=about)
    levels = [finding["level"] for finding in findings]
    return {"test": test.pk, "failed": levels.count("failed"), "warnings": levels.count("warning")}


def test_broke(job: Job, error: str) -> None:
    test = connection_test_by_id(int(job.params["test"]))
    if test is not None:
        broke = Finding("reach", "broke" if error else "called_off", FAILED, {"why": error}).to_json()
        connection_services.note_findings(
            test=test, percent=test.percent, findings=[*test.findings, broke], finished=True
        )


def _connection(test: ConnectionTest) -> Connection:
    if test.offer:
        if not test.open_offer:
            raise DomainError("conflict", "This connection cannot be taken any more: give it again.")
        return connection_of(test)
    if test.cluster is None or test.cluster.disconnected_at is not None:
        raise DomainError("conflict", "The cluster is disconnected.")
    return connection_of(test.cluster)


def _probe(connection: Connection, test: ConnectionTest) -> Any:
    client, cluster = KubernetesClient(connection), test.cluster
    conf = (cluster.volcano_namespace, cluster.volcano_config_map) if cluster is not None else VOLCANO_CONF
    try:

        def twin(uid: str) -> str:
            found = same_server(uid, but=test.cluster_id)
            return found.name if found is not None else ""

        probe = Probe(client, mode=test.mode, installation=installation_id(), now=timezone.now(), conf=conf, twin=twin)
        yield from probe.run()
    finally:
        client.close()
