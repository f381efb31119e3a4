import datetime as dt
import time
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from tidesched_web.clusters.models import NOT_READY_TAINTS, CardType, Node
from tidesched_web.common.locking import require_transaction
from tidesched_web.engine.cards import hardware
from tidesched_web.engine.model import Node as SeenNode
from tidesched_web.engine.model import Snapshot
from tidesched_web.engine.tide import quota_beyond_hardware
from tidesched_web.quota.selectors import cards_of_no_node
from tidesched_web.scheduling.models import AlertSeverity
from tidesched_web.scheduling.pipeline import alerts

CARD_ALERTS_SECONDS = 5.0
# A controller that writes one field wrongly writes it in each of its objects.
MOST_UNREADABLE = 20
_NODE_WRITTEN = (
    "cpu_milli", "memory_mib", "pods", "cards", "labels", "taints", "unschedulable", "last_seen_at", "gone_at"
)  # fmt: skip


class Inventory:
    def __init__(self, *, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._nodes: dict[str, SeenNode | None] = {}
        self._cut: dict[str, dict[str, int]] = {}
        self._cards_alerted_at = float("-inf")
        self._hardware: dict[str, int] | None = None
        self._quotas: Any = None
        self._findings: Any = None

    def load(self) -> None:
        rows = Node.objects.filter(cluster_id=self.cluster_id, gone_at__isnull=True).values_list("name", "cards")
        self._cut = dict(rows)
        self._nodes = dict.fromkeys(self._cut)
        self._cards_alerted_at = float("-inf")
        self._hardware = None
        self._quotas = None
        self._findings = None

    def record(self, snapshot: Snapshot, *, ratios: Mapping[str, float], wall_at: dt.datetime) -> int:
        require_transaction()
        seen = {node.name: node for node in snapshot.nodes}
        changed = [node for name, node in seen.items() if self._nodes.get(name) is not node]
        changed = [node for node in changed if self._nodes.get(node.name) != node]
        lost = [name for name in self._nodes if name not in seen]
        if changed:
            Node.objects.bulk_create(
                (_row(self.cluster_id, node, wall_at) for node in changed),
                update_conflicts=True,
                unique_fields=("cluster", "name"),
                update_fields=_NODE_WRITTEN,
                batch_size=1000,
            )
        if lost:
            Node.objects.filter(cluster_id=self.cluster_id, name__in=lost).update(gone_at=wall_at)
        self._alert_changes(changed, lost)
        if snapshot.findings != self._findings:
            self._findings = snapshot.findings
            wanted = _unreadable(snapshot)
            alerts.keep_open(cluster_id=self.cluster_id, prefix="object_unreadable:", wanted=wanted)
        if changed or lost:
            self._alert_not_ready(snapshot)
        self._nodes = dict(seen)
        self._cut |= {node.name: _cards(node) for node in changed}
        for name in lost:
            self._cut.pop(name, None)
        return len(changed) + len(lost) + self._record_card_types(snapshot, ratios=ratios, wall_at=wall_at)

    def _record_card_types(self, snapshot: Snapshot, *, ratios: Mapping[str, float], wall_at: dt.datetime) -> int:
        have = hardware(snapshot.nodes)
        changes = 0
        if have != self._hardware:
            changes = len(have)
            self._write_card_types(snapshot, have, wall_at)
            self._hardware = have
        quotas = quota_beyond_hardware(snapshot, ratios)
        if quotas != self._quotas:
            self._quotas = quotas
            alerts.keep_open(cluster_id=self.cluster_id, prefix="quota_over_hardware:", wanted=_quota_alerts(quotas))
        self._alert_cards(snapshot)
        return changes

    def _write_card_types(self, snapshot: Snapshot, have: dict[str, int], wall_at: dt.datetime) -> None:
        ids: dict[str, int] = {}
        # Whole cards first: slices point to them.
        for card in sorted(snapshot.card_types, key=lambda card: (card.parent is not None, card.name)):
            row, _ = CardType.objects.update_or_create(
                cluster_id=self.cluster_id,
                name=card.name,
                defaults={
                    "resource": card.resource,
                    "kind": str(card.kind),
                    "parent_id": ids.get(card.parent or ""),
                    "hardware": have.get(card.name, 0),
                    "last_seen_at": wall_at,
                },
            )
            ids[card.name] = row.pk
        CardType.objects.filter(cluster_id=self.cluster_id).exclude(name__in=have).update(hardware=0)

    def _alert_changes(self, changed: list[SeenNode], lost: list[str]) -> None:
        for name in lost:
            cards = self._cut.get(name, {})
            alerts.raise_alert(
                cluster_id=self.cluster_id,
                key=f"node_lost:{name}",
                severity=AlertSeverity.WARNING if cards else AlertSeverity.INFO,
                code="node_lost",
                message=f"Node {name} has left the cluster.",
                numbers={"node": name, "cards": cards},
            )
        for node in changed:
            before = self._cut.get(node.name)
            if before is None:
                alerts.resolve(cluster_id=self.cluster_id, key=f"node_lost:{node.name}", by="scheduler")
            elif before != _cards(node):
                alerts.raise_recut(cluster_id=self.cluster_id, node=node.name, before=before, after=_cards(node))

    def _alert_not_ready(self, snapshot: Snapshot) -> None:
        marked = {
            node.name: _cards(node)
            for node in snapshot.nodes
            if _cards(node) and any(taint.key in NOT_READY_TAINTS for taint in node.taints)
        }
        wanted = {
            f"node_not_ready:{name}"[:120]: {
                "severity": AlertSeverity.WARNING,
                "code": "node_not_ready",
                "message": f"Node {name} is not ready.",
                "numbers": {"node": name, "cards": cards},
            }
            for name, cards in marked.items()
        }
        alerts.keep_open(cluster_id=self.cluster_id, prefix="node_not_ready:", wanted=wanted)

    def _alert_cards(self, snapshot: Snapshot) -> None:
        if time.monotonic() - self._cards_alerted_at < CARD_ALERTS_SECONDS:
            return
        self._cards_alerted_at = time.monotonic()
        live = {card for queue in snapshot.queues for card, milli in (queue.card_quota or {}).items() if milli}
        lost, named = cards_of_no_node(self.cluster_id, live)
        alerts.keep_open(cluster_id=self.cluster_id, prefix="card_lost:", wanted=_card_alerts("card_lost", lost))
        alerts.keep_open(
            cluster_id=self.cluster_id, prefix="quota_without_card:", wanted=_card_alerts("quota_without_card", named)
        )


def _unreadable(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """The first of the objects that cannot be read; mending those shows the others."""
    return {
        f"object_unreadable:{blake2b(f'{finding.object} {finding.path}'.encode(), digest_size=16).hexdigest()}": {
            "severity": AlertSeverity.WARNING,
            "code": "object_unreadable",
            "message": f"{finding.object}: {finding.path}: {finding.message}. {finding.fix}",
            "numbers": {"object": finding.object},
        }
        for finding in [one for one in snapshot.findings if one.severity == "error"][:MOST_UNREADABLE]
    }


def _card_alerts(code: str, cards: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    said = {
        "card_lost": "No node has {card} any more; queues are promised {quota}.",
        "quota_without_card": "Queues are promised {quota} × {card}, which no node has.",
    }[code]
    return {
        f"{code}:{card}"[:120]: {
            "severity": AlertSeverity.WARNING,
            "code": code,
            "message": said.format(card=card, quota=quota),
            "numbers": {"card": card, "quota": quota},
        }
        for card, quota in cards.items()
    }


def _cards(node: SeenNode) -> dict[str, int]:
    return {cards.card: cards.count for cards in node.cards}


def _quota_alerts(quotas: dict[str, dict[str, tuple[int, int]]]) -> dict[str, dict[str, Any]]:
    return {
        f"quota_over_hardware:{service_type}:{card}"[:120]: {
            "severity": AlertSeverity.WARNING,
            "code": "quota_over_hardware",
            "message": f"The {service_type} queues are promised {quota / 1000:g} × {card}; "
            f"the nodes have {have / 1000:g}.",
            "numbers": {"service_type": service_type, "card": card, "quota": quota / 1000, "hardware": have / 1000},
        }
        for service_type, cards in quotas.items()
        for card, (quota, have) in cards.items()
        if have  # a card that no node has gets an alert of its own
    }


def _row(cluster_id: int, node: SeenNode, wall_at: dt.datetime) -> Node:
    return Node(
        cluster_id=cluster_id, name=node.name, cpu_milli=node.cpu_milli, memory_mib=node.memory_mib, pods=node.pods,
        cards=_cards(node), labels=node.labels,
        taints=msgspec.to_builtins(node.taints), unschedulable=node.unschedulable, last_seen_at=wall_at, gone_at=None,
    )  # fmt: skip
