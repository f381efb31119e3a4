from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from tidesched_web.accounts.identity_selectors import keys_of_sign_in
from tidesched_web.accounts.selectors import keys_of_mfa
from tidesched_web.audit.selectors import foreign_encryption_keys
from tidesched_web.clusters.models import NOT_READY_TAINTS, CardType, Cluster, Node, PolicyRevision
from tidesched_web.common.encryption import known_key_ids
from tidesched_web.common.permissions import Access


def visible_clusters(access: Access) -> QuerySet[Cluster]:
    """Clusters where a tenant of the caller has a queue."""
    clusters = Cluster.objects.defer("credentials", "ca_certificate")
    if access.everything:
        return clusters
    # By the reverse name: the quota context stands above this one.
    queues = Cluster._meta.get_field("queues").related_model._base_manager
    return clusters.filter(Exists(queues.filter(cluster=OuterRef("pk"), tenant_id__in=access.tenant_ids)))


def only_simulated() -> bool:
    """Whether no real cluster is connected: what runs is a demo. One query."""
    return not Cluster.objects.filter(simulated=False).exists()


def visible_card_types(access: Access) -> QuerySet[CardType]:
    return CardType.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster", "parent")


def card_names(cluster: Cluster) -> list[str]:
    return list(CardType.objects.filter(cluster=cluster).order_by("name").values_list("name", flat=True))


def cards_as_found(cluster: Cluster) -> list[str]:
    """The card types of a cluster in the order in which they came: the place of one never changes. One query."""
    return list(CardType.objects.filter(cluster=cluster).order_by("pk").values_list("name", flat=True))


def card_aliases(cluster: Cluster) -> dict[str, str]:
    rows = CardType.objects.filter(cluster=cluster).values_list("name", "aliases")
    return aliases_of(dict(rows))


def aliases_of(cards: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Alias → name, of name → aliases. What a node shows later under the same name is that card, no alias."""
    return {alias: name for name, aliases in cards.items() for alias in aliases if alias not in cards}


def visible_nodes(access: Access) -> QuerySet[Node]:
    return Node.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster")


def _says_not_ready() -> Q:
    """`says_not_ready`, asked of the database."""
    found = Q()
    for key in sorted(NOT_READY_TAINTS):
        found |= Q(taints__contains=[{"key": key}])
    return found


def nodes_in_state(nodes: QuerySet[Node], state: str) -> QuerySet[Node]:
    if state == "not_ready":
        return nodes.filter(_says_not_ready())
    return nodes.filter(~_says_not_ready(), unschedulable=state == "closed")


def with_troubles(nodes: QuerySet[Node], cluster: Cluster) -> QuerySet[Node]:
    def number(found: Q) -> Coalesce:
        here = Node.objects.filter(found, cluster=cluster, gone_at__isnull=True).order_by()
        return Coalesce(Subquery(here.values("cluster").annotate(n=Count("pk")).values("n")), 0)

    closed = Q(unschedulable=True) & ~_says_not_ready()
    return nodes.annotate(nodes_not_ready=number(_says_not_ready()), nodes_closed=number(closed))


def visible_policies(access: Access) -> QuerySet[PolicyRevision]:
    return PolicyRevision.objects.filter(cluster__in=visible_clusters(access))


def ruling_policy(cluster: Cluster) -> PolicyRevision | None:
    return newest_usable(PolicyRevision.objects.filter(cluster=cluster, valid=True).order_by("-number")[:5])


def newest_usable(revisions: Iterable[PolicyRevision]) -> PolicyRevision | None:
    """A plugin that a stored one names may be gone: then the first valid one."""
    from tidesched_web.engine.policy_check import outline  # the engine is heavy

    valid = [one for one in revisions if one.valid]
    return next((one for one in valid if outline(one.text) is not None), valid[0] if valid else None)


def newest_policy(cluster: Cluster) -> PolicyRevision | None:
    """The revision of the highest number, also one that no session can run under."""
    return PolicyRevision.objects.filter(cluster=cluster).order_by("-number").first()


def foreign_key_ids() -> list[str]:
    """Ids of keys that made stored credentials and that this process does not have."""
    used = set(Cluster.objects.exclude(credentials_key_id="").values_list("credentials_key_id", flat=True))
    used |= keys_of_mfa() | keys_of_sign_in()
    return sorted({*(used.difference(known_key_ids()) if used else ()), *foreign_encryption_keys()})
