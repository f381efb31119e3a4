import datetime as dt
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from tidesched_web.audit import services as audit
from tidesched_web.clusters.connection_input import Offered, by_kubeconfig
from tidesched_web.clusters.credentials import connection_of, kubeconfig_of, seal
from tidesched_web.clusters.kubernetes.credential_facts import authorities
from tidesched_web.clusters.models import Cluster, ClusterMode, ConnectionKind, ConnectionTest, SealedConnection
from tidesched_web.clusters.services import set_policy, two_schedulers
from tidesched_web.common import live
from tidesched_web.common.errors import DomainError, need_reason
from tidesched_web.common.locking import lock_row
from tidesched_web.common.validation import check_fields

OFFER_LIVES = dt.timedelta(hours=1)
OFFERS_KEPT = dt.timedelta(days=7)
TESTS_KEPT = 50
# What a person may not brush aside: two schedulers would write the same statuses.
_BLOCKING = frozenset({"volcano_runs", "other_installation"})
_COLUMNS = (
    "api_url",
    "ca_certificate",
    "tls_server_name",
    "connection_kind",
    "credentials",
    "credentials_key_id",
    "credentials_subject",
    "credentials_expire_at",
)


def _put(row: SealedConnection, offered: Offered) -> None:
    connection = offered.connection
    row.api_url, row.ca_certificate = connection.url, connection.ca_certificate
    row.tls_server_name, row.connection_kind = connection.tls_server_name, offered.kind
    row.credentials_subject, row.credentials_expire_at = offered.facts.subject, offered.facts.expires_at
    seal(
        row,
        connection.token,
        client_certificate=connection.client_certificate,
        client_key=connection.client_key,
        kubeconfig=offered.kubeconfig if len(offered.contexts) > 1 else "",
    )


def about(row: SealedConnection) -> dict[str, Any]:
    return {
        "api_url": row.api_url,
        "kind": row.connection_kind,
        "subject": row.credentials_subject,
        "expires_at": row.credentials_expire_at,
        "authorities": [one.fingerprint for one in authorities(row.ca_certificate)],
    }


@transaction.atomic
def offer(
    *, offered: Offered, mode: str, actor: str, owner_id: int | None, cluster: Cluster | None = None
) -> ConnectionTest:
    """Keep a connection, encrypted, for an hour: long enough to test it before anything is saved."""
    forget_offers()
    _known(mode)
    test = ConnectionTest(cluster=cluster, offer=True, mode=mode, actor=actor[:200], owner_id=owner_id)
    test.context, test.contexts = offered.context, offered.contexts
    _put(test, offered)
    check_fields(test)
    test.save()
    return test


@transaction.atomic
def choose_context(*, test: ConnectionTest, context: str, actor: str, owner_id: int | None) -> ConnectionTest:
    text = kubeconfig_of(test)
    if not test.open_offer or not text:
        raise DomainError("conflict", _("This connection cannot be taken any more: give it again."))
    offered = by_kubeconfig(text, context=context)
    made = offer(offered=offered, mode=test.mode, actor=actor, owner_id=owner_id, cluster=test.cluster)
    _forget([test.pk])
    return made


@transaction.atomic
def begin_test(*, cluster: Cluster, actor: str, owner_id: int | None, mode: str = "") -> ConnectionTest:
    if cluster.disconnected_at is not None:
        raise DomainError("conflict", _("%(cluster)s is disconnected.") % {"cluster": cluster.name})
    mode = mode or cluster.mode
    _known(mode)
    old = ConnectionTest.objects.filter(cluster=cluster).order_by("-id").values_list("pk", flat=True)[TESTS_KEPT:]
    ConnectionTest.objects.filter(pk__in=list(old)).delete()
    return ConnectionTest.objects.create(
        cluster=cluster, mode=mode, actor=actor[:200], owner_id=owner_id, api_url=cluster.api_url
    )


def note_job(*, test: ConnectionTest, job_id: int) -> None:
    ConnectionTest.objects.filter(pk=test.pk).update(job_id=job_id)
    test.job_id = job_id


def note_findings(*, test: ConnectionTest, percent: int, findings: list[dict[str, Any]], finished: bool) -> None:
    values: dict[str, Any] = {"percent": percent, "findings": findings}
    if finished:
        values["finished_at"] = timezone.now()
    ConnectionTest.objects.filter(pk=test.pk, finished_at__isnull=True).update(**values)


@transaction.atomic
def connect(
    *, test: ConnectionTest, name: str, actor: str, reason: str, slug: str = "", accept: bool = False
) -> Cluster:
    """In mode schedule nothing is sent until a person has released the policy. ``accept``: findings were read."""
    from tidesched_web.engine.demo import FOUNDING_POLICY  # the engine is heavy: only this service needs it here

    reason = need_reason(reason)
    test = _taken(test, accept=accept)
    cluster = Cluster(name=name.strip(), slug=slug or slugify(name)[:63], mode=test.mode)
    _copy(test, cluster, actor)
    check_fields(cluster)
    try:
        with transaction.atomic():
            cluster.save()
    except IntegrityError:
        text = _("There is a cluster %(name)s already.") % {"name": name}
        raise DomainError.for_field("/name", text, code="already_exists") from None
    _close(test, cluster)
    after = {"name": cluster.name, "slug": cluster.slug, "mode": cluster.mode, **about(cluster)}
    _append(cluster, actor=actor, action="cluster.connect", reason=reason, after=after | _judged(test))
    set_policy(cluster=cluster, text=FOUNDING_POLICY, actor=actor, reason=reason)
    return cluster


@transaction.atomic
def replace(*, test: ConnectionTest, actor: str, reason: str, accept: bool = False) -> Cluster:
    reason = need_reason(reason)
    if test.cluster_id is None:
        raise DomainError("conflict", _("This connection is not one of a cluster."))
    cluster = lock_row(Cluster, test.cluster_id)
    test = _taken(test, accept=accept)
    before = about(cluster)
    _copy(test, cluster, actor)
    cluster.disconnected_at = None
    cluster.version += 1
    said = ("credentials_set_at", "credentials_set_by", "disconnected_at", "server_uid", "version", "updated_at")
    cluster.save(update_fields=[*_COLUMNS, *said])
    _close(test, cluster)
    after = about(cluster) | {"credentials_changed": True} | _judged(test)
    _append(cluster, actor=actor, action="cluster.set_connection", reason=reason, before=before, after=after)
    return cluster


@transaction.atomic
def disconnect(*, cluster: Cluster, actor: str, reason: str) -> Cluster:
    """Forget the credentials: no session, no push, until it is connected again. What is known of it stays."""
    reason = need_reason(reason)
    row = lock_row(Cluster, cluster.pk)
    if row.disconnected_at is not None:
        raise DomainError("conflict", _("%(cluster)s is disconnected already.") % {"cluster": row.name})
    if row.simulated:
        raise DomainError("conflict", _("The demo's cluster is part of this installation; switch it off by DEMO=0."))
    before = about(row)
    row.credentials, row.credentials_key_id = None, ""
    row.credentials_subject, row.credentials_expire_at = "", None
    row.disconnected_at = timezone.now()
    row.version += 1
    row.save(update_fields=[*_COLUMNS, "disconnected_at", "version", "updated_at"])
    _forget(ConnectionTest.objects.filter(cluster=row, offer=True).values_list("pk", flat=True))
    _append(row, actor=actor, action="cluster.disconnect", reason=reason, before=before)
    return row


def forget_offers() -> int:
    """Take the secrets out of offers that were not taken within an hour; those of no cluster go after a week."""
    old = timezone.now() - OFFERS_KEPT
    ConnectionTest.objects.filter(offer=True, cluster__isnull=True, started_at__lt=old).delete()
    late = ConnectionTest.objects.filter(offer=True, taken_at__isnull=True, credentials__isnull=False)
    return _forget(late.filter(started_at__lt=timezone.now() - OFFER_LIVES).values_list("pk", flat=True))


# -- parts -----------------------------------------------------------------------------------------------------


def _known(mode: str) -> None:
    if mode not in ClusterMode.values:
        text = _("Unknown mode %(mode)s. Known: %(known)s.")
        raise DomainError.for_field("/mode", text % {"mode": repr(mode), "known": ", ".join(ClusterMode.values)})


def _taken(test: ConnectionTest, *, accept: bool) -> ConnectionTest:
    row = ConnectionTest.objects.select_for_update(of=("self",), no_key=True).filter(pk=test.pk).first()
    if row is None or not row.open_offer or row.started_at < timezone.now() - OFFER_LIVES:
        raise DomainError("conflict", _("This connection cannot be taken any more: give it again."))
    failed = [one for one in row.findings if one["level"] == "failed"]
    twin = next((one["values"]["cluster"] for one in failed if one["code"] == "same_server"), "")
    if twin:
        said = _("This is the cluster that is connected as %(cluster)s already.")
        raise DomainError("conflict", said % {"cluster": twin})
    if row.mode == ClusterMode.SCHEDULE and any(one["code"] in _BLOCKING for one in failed):
        raise DomainError("conflict", two_schedulers())
    if (failed or row.finished_at is None) and not accept:
        text = _("The test has found what is missing, or is not over: mend it, or say that you know.")
        raise DomainError.for_field("/accept", text, code="conflict")
    return row


def _copy(test: ConnectionTest, cluster: Cluster, actor: str) -> None:
    for column in _COLUMNS:
        setattr(cluster, column, getattr(test, column))
    if test.connection_kind == ConnectionKind.IN_CLUSTER:
        cluster.credentials, cluster.credentials_key_id = None, ""
    else:
        found = connection_of(test)
        seal(cluster, found.token, client_certificate=found.client_certificate, client_key=found.client_key)
    cluster.credentials_set_at, cluster.credentials_set_by = timezone.now(), actor[:200]
    cluster.server_uid = ""


def _close(test: ConnectionTest, cluster: Cluster) -> None:
    ConnectionTest.objects.filter(pk=test.pk).update(taken_at=timezone.now(), cluster=cluster)
    _forget([test.pk])


def _forget(tests: Any) -> int:
    rows = ConnectionTest.objects.filter(pk__in=list(tests))
    return rows.update(credentials=None, credentials_key_id="")


def _judged(test: ConnectionTest) -> dict[str, Any]:
    missing = [one["code"] for one in test.findings if one["level"] == "failed"]
    return {"test": test.pk, "accepted": sorted(set(missing))}


def _append(cluster: Cluster, *, actor: str, action: str, reason: str, **facts: Any) -> None:
    audit.append(
        chain=audit.cluster_chain(cluster.pk),
        actor=actor,
        action=action,
        cluster_id=cluster.pk,
        object_type="cluster",
        object_id=cluster.pk,
        object_label=cluster.slug,
        reason=reason,
        **facts,
    )
    about = live.About("cluster", cluster.slug, "connection")
    transaction.on_commit(
        lambda: live.publish("clusters", cluster.pk, cluster.version, cluster_id=cluster.pk, about=about), robust=True
    )
