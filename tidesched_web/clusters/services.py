import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

import orjson
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from tidesched_web.audit import services as audit
from tidesched_web.clusters.addresses import checked_address
from tidesched_web.clusters.connection_selectors import other_installation, volcano_runs
from tidesched_web.clusters.credentials import bearer_token, seal, seal_anew
from tidesched_web.clusters.models import CardKind, CardType, Cluster, ClusterMode, PolicyRevision
from tidesched_web.clusters.selectors import foreign_key_ids
from tidesched_web.common import live
from tidesched_web.common.encryption import known_key_ids
from tidesched_web.common.errors import DomainError, need_reason
from tidesched_web.common.locking import lock_row
from tidesched_web.common.time_zones import time_zones
from tidesched_web.common.validation import check_fields


def refuse_mode(*, cluster: Cluster, mode: str) -> None:
    """Refuse mode schedule where another scheduler was found at work, by a test of whichever mode."""
    if mode == ClusterMode.SCHEDULE and (volcano_runs(cluster) or other_installation(cluster)):
        raise DomainError.for_field("/mode", two_schedulers(), code="conflict")


def two_schedulers() -> str:
    return _(
        "Another scheduler is at work in this cluster: two of them would write the same PodGroups and queues. "
        "Stop it first, or choose mode quota."
    )


def _append(cluster: Cluster, *, actor: str, action: str, **facts: Any) -> None:
    about: dict[str, Any] = {"object_type": "cluster", "object_id": cluster.pk, "object_label": cluster.slug} | facts
    audit.append(chain=audit.cluster_chain(cluster.pk), actor=actor, action=action, cluster_id=cluster.pk, **about)
    transaction.on_commit(
        lambda: live.publish(
            "clusters",
            cluster.pk,
            cluster.version,
            cluster_id=cluster.pk,
            about=live.About("cluster", cluster.slug, "settings"),
        ),
        robust=True,
    )


@transaction.atomic
def create(
    *,
    name: str,
    api_url: str,
    actor: str,
    slug: str = "",
    mode: str = ClusterMode.OBSERVE,
    token: str = "",
    ca_certificate: str = "",
    simulated: bool = False,
    clock_rate: float = 1.0,
    clock_anchor: dt.datetime | None = None,
    clock_wall_anchor: dt.datetime | None = None,
    session_period_seconds: float = 1.0,
    scheduler_names: list[str] | None = None,
    reason: str = "",
) -> Cluster:
    """Add a cluster. It starts in mode observe unless the caller says otherwise."""
    cluster = Cluster(
        name=name,
        slug=slug or slugify(name)[:63],
        mode=mode,
        api_url=checked_address(api_url, simulated=simulated),
        ca_certificate=ca_certificate,
        simulated=simulated,
        clock_rate=clock_rate,
        clock_anchor=clock_anchor,
        clock_wall_anchor=clock_wall_anchor,
        session_period_seconds=session_period_seconds,
    )
    if scheduler_names is not None:
        cluster.scheduler_names = scheduler_names
    seal(cluster, token)
    check_fields(cluster)
    try:
        with transaction.atomic():
            cluster.save()
    except IntegrityError:
        raise DomainError.for_field("/name", f"There is a cluster {name!r} already.", code="already_exists") from None
    _append(
        cluster,
        actor=actor,
        action="cluster.create",
        reason=reason,
        after={"name": name, "slug": cluster.slug, "mode": mode, "api_url": cluster.api_url, "simulated": simulated},
    )
    return cluster


@transaction.atomic
def set_connection(*, cluster: Cluster, api_url: str, token: str | None, actor: str, reason: str = "") -> Cluster:
    """Change address and credentials (None keeps them). The entry says that a secret changed, never the secret."""
    cluster = lock_row(Cluster, cluster.pk)
    address = checked_address(api_url, simulated=cluster.simulated)
    secret_changes = token is not None and token != bearer_token(cluster)
    if cluster.api_url == address and not secret_changes:
        return cluster
    before = {"api_url": cluster.api_url}
    cluster.api_url, cluster.server_uid = address, ""
    if token is not None and secret_changes:
        seal(cluster, token)
    cluster.version += 1
    cluster.save(update_fields=["api_url", "server_uid", "credentials", "credentials_key_id", "version", "updated_at"])
    after = {"api_url": address, "credentials_changed": secret_changes}
    _append(cluster, actor=actor, action="cluster.set_connection", reason=reason, before=before, after=after)
    return cluster


_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_SETTINGS = (
    "name",
    "mode",
    "scheduler_names",
    "volcano_namespace",
    "volcano_config_map",
    "session_period_seconds",
    "evict_gangs_per_minute",
    "evict_cards_per_minute",
    "evict_share_of_training",
    "time_zone",
)


@transaction.atomic
def set_settings(
    *, cluster: Cluster, values: Mapping[str, Any], actor: str, reason: str, version: int | None = None
) -> Cluster:
    """Change some of a cluster's settings. ``version`` is the one that the author looked at."""
    reason = need_reason(reason)
    row = lock_row(Cluster, cluster.pk)
    if version is not None and version != row.version:
        said = _("This cluster was changed meanwhile: look at the present state, then try again.")
        raise DomainError("stale", said, {"etag": f'"{row.version}"', "version": row.version})
    unknown = sorted(set(values).difference(_SETTINGS))
    if unknown:
        raise DomainError.for_field(f"/{unknown[0]}", f"Unknown setting. Known: {', '.join(_SETTINGS)}.")
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    if not changed:
        return row
    if "mode" in changed:
        refuse_mode(cluster=row, mode=changed["mode"])
    before = {name: getattr(row, name) for name in changed}
    for name, value in changed.items():
        setattr(row, name, value)
    row.version += 1
    _check_settings(row)
    try:
        with transaction.atomic():
            row.save(update_fields=[*changed, "version", "updated_at"])
    except IntegrityError:
        text = _("There is a cluster %(name)s already.") % {"name": row.name}
        raise DomainError.for_field("/name", text, code="already_exists") from None
    _append(row, actor=actor, action="cluster.set_settings", reason=reason, before=before, after=changed)
    return row


def _check_settings(row: Cluster) -> None:
    check_fields(row)
    if not row.scheduler_names:
        raise DomainError.for_field("/scheduler_names", _("At least one name of a scheduler is needed."))
    for field in ("volcano_namespace", "volcano_config_map"):
        if not _NAME.fullmatch(getattr(row, field)):
            raise DomainError.for_field(f"/{field}", _("This is no name of a Kubernetes object."))
    if not 0.1 <= row.session_period_seconds <= 3600:
        raise DomainError.for_field("/session_period_seconds", _("From 0.1 to 3600 seconds."))
    if not 0 <= row.evict_share_of_training <= 1:
        raise DomainError.for_field("/evict_share_of_training", _("From 0 to 1."))
    if row.time_zone and row.time_zone not in time_zones():
        raise DomainError.for_field(
            "/time_zone", _("This is no time zone; one is Asia/Shanghai."), code="against_rules"
        )


def require_newest_policy(cluster: Cluster, version: int | None) -> PolicyRevision | None:
    newest = PolicyRevision.objects.filter(cluster=cluster).order_by("-number").first()
    number = newest.number if newest else 0
    if version is not None and version != number:
        said = _("The policy was changed meanwhile: you looked at revision %(seen)s, the newest is %(now)s.")
        raise DomainError("stale", said % {"seen": version, "now": number}, {"etag": f'"{number}"', "version": number})
    return newest


@transaction.atomic
def set_policy(
    *, cluster: Cluster, text: str, actor: str, reason: str = "", released: bool = False, version: int | None = None
) -> PolicyRevision:
    """A refused text leaves the last good one ruling. ``released``: right for a new cluster's first policy only."""
    from tidesched_web.engine.bridge import policy_problem  # the engine is heavy: only this service needs it here

    lock_row(Cluster, cluster.pk)
    newest = require_newest_policy(cluster, version)
    if newest is not None and newest.text == text:
        return newest
    problem = policy_problem(text)
    if problem is not None:
        place = {"pointer": "/text", "code": "invalid_policy", "detail": str(problem["message"])}
        figures = {"line": problem.get("line"), "hint": problem.get("hint")}
        raise DomainError(
            "invalid_policy", place["detail"], {"policy_error": problem, "errors": [{**place, **figures}]}
        )
    revision = PolicyRevision.objects.create(
        cluster=cluster,
        number=newest.number + 1 if newest else 1,
        text=text,
        valid=True,
        created_by=actor,
        reason=reason,
        released_at=timezone.now() if released else None,
    )
    _append(
        cluster,
        actor=actor,
        action="policy.set",
        object_type="policy",
        object_id=revision.pk,
        object_label=f"{cluster.slug} policy {revision.number}",
        reason=reason,
        before={"number": newest.number, "text": newest.text} if newest else None,
        after={"number": revision.number, "text": text, "released": released},
    )
    return revision


@transaction.atomic
def release_policy(*, revision: PolicyRevision, actor: str, reason: str = "") -> bool:
    """Let sessions send what they decide under ``revision``; False where that was so already."""
    now = timezone.now()
    if not PolicyRevision.objects.filter(pk=revision.pk, released_at__isnull=True).update(released_at=now):
        return False
    _append(
        revision.cluster,
        actor=actor,
        action="policy.release",
        object_type="policy",
        object_id=revision.pk,
        object_label=f"{revision.cluster.slug} policy {revision.number}",
        reason=reason,
        after={"released_at": now},
    )
    return True


@transaction.atomic
def pause(*, cluster: Cluster, actor: str, reason: str) -> Cluster:
    """Stop sending anything to a cluster until it is resumed. Conditional: of two people one wins."""
    reason = need_reason(reason)
    now = timezone.now()
    paused = Cluster.objects.filter(pk=cluster.pk, paused_at__isnull=True).update(
        paused_at=now, paused_by=actor[:200], paused_reason=reason, version=F("version") + 1, updated_at=now
    )
    cluster.refresh_from_db(fields=["paused_at", "paused_by", "paused_reason", "version"])
    if not paused:
        text = _("%(cluster)s is paused already, by %(person)s.")
        raise DomainError("conflict", text % {"cluster": cluster.name, "person": cluster.paused_by})
    _append(cluster, actor=actor, action="cluster.pause", reason=reason, after={"paused_at": now})
    return cluster


@transaction.atomic
def resume(*, cluster: Cluster, actor: str, reason: str) -> Cluster:
    reason = need_reason(reason)
    locked = lock_row(Cluster, cluster.pk)
    if locked.paused_at is None:
        raise DomainError("conflict", _("%(cluster)s is not paused.") % {"cluster": cluster.name})
    before = {"paused_at": locked.paused_at, "paused_by": locked.paused_by, "reason": locked.paused_reason}
    cluster.paused_at, cluster.paused_by, cluster.paused_reason = None, "", ""
    cluster.version = locked.version + 1
    cluster.save(update_fields=["paused_at", "paused_by", "paused_reason", "version", "updated_at"])
    _append(cluster, actor=actor, action="cluster.resume", reason=reason, before=before)
    return cluster


@transaction.atomic
def ensure_card_type(
    *, cluster: Cluster, name: str, actor: str, resource: str = "", kind: str = CardKind.WHOLE, parent: str = ""
) -> CardType:
    """Declare a card type ahead of the nodes that carry it; a known one is left as it is."""
    found = CardType.objects.filter(cluster=cluster, name=name).first()
    if found is not None:
        return found
    above = None
    if parent:
        above = CardType.objects.filter(cluster=cluster, name=parent).first()
        if above is None:
            raise DomainError.for_field("/parent", f"There is no card type {parent!r} here.", code="unknown_card")
    made, created = CardType.objects.get_or_create(
        cluster=cluster, name=name, defaults={"resource": resource, "kind": kind, "parent": above, "discovered": False}
    )
    if created:
        _append(
            cluster,
            actor=actor,
            action="card_type.declare",
            object_type="card_type",
            object_id=made.pk,
            object_label=name,
            after={"name": name, "resource": resource, "kind": kind, "parent": parent},
        )
    return made


def note_server(*, cluster: Cluster, server_uid: str) -> None:
    """Which server answers for the cluster."""
    Cluster.objects.filter(pk=cluster.pk).update(server_uid=server_uid)


def note_clock(*, cluster: Cluster, virtual: dt.datetime, wall: dt.datetime, rate: float) -> bool:
    """A measurement, not an intent: it is not audited and counts no version. False where the row had it right."""
    off = abs((cluster.clock(wall) - virtual).total_seconds())
    if cluster.clock_rate == rate and off <= max(1.0, rate / 2):
        return False
    cluster.clock_anchor, cluster.clock_wall_anchor, cluster.clock_rate = virtual, wall, rate
    Cluster.objects.filter(pk=cluster.pk).update(clock_anchor=virtual, clock_wall_anchor=wall, clock_rate=rate)
    return True


def refuse_foreign_keys() -> None:
    """Stop a start that could not read the stored credentials: a session would find out much later."""
    foreign = foreign_key_ids()
    if foreign:
        raise DomainError(
            "undecryptable",
            f"Credentials in this database were encrypted with keys that TIDESCHED_KEYS does not have "
            f"({', '.join(foreign)}). Add those keys behind the first one, or set the clusters' credentials anew.",
        )


@transaction.atomic
def rotate_credentials() -> int:
    """Encrypt every stored credential again with the first key; returns how many there were to do."""
    stale = Cluster.objects.exclude(credentials_key_id__in=["", known_key_ids()[0]])
    clusters = list(stale.order_by("pk").select_for_update(no_key=True))
    for cluster in clusters:
        seal_anew(cluster)
        cluster.save(update_fields=["credentials", "credentials_key_id"])
    return len(clusters)


_COUNT = """
INSERT INTO clusters_counted (cluster_id, key, figure) SELECT %s, ARRAY(SELECT json_array_elements_text(key)), figure
FROM unnest(%s::json[], %s::float8[]) AS more (key, figure)
ON CONFLICT (cluster_id, key) DO UPDATE SET figure = clusters_counted.figure + excluded.figure
"""


def count(cluster_id: int, figures: Mapping[tuple[str, ...], float]) -> None:
    """Last in its transaction: whoever counts the same locks these rows."""
    if rows := sorted(figures.items()):
        keys, amounts = [orjson.dumps(key).decode() for key, _ in rows], [float(amount) for _, amount in rows]
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, [cluster_id, keys, amounts])
