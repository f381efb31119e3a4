"""The receipt of a reclaim, computed again from the stored snapshot of its session, in plain Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.objects import CARD
from tests.web.audit_copies import Outside, by_command, by_outsider
from tidesched_web.audit import key_services
from tidesched_web.audit.models import AuditEntry
from tidesched_web.scheduling.models import Reclaim
from tidesched_web.scheduling.pipeline import inputs


def cards(reclaim: Reclaim, *, placed: bool) -> dict[str, float]:
    """Cards by queue of the pods that the session found in place, or waiting."""
    snapshot, _ = inputs.read(reclaim.session)
    queues = {f"{group.namespace}/{group.name}": group.queue for group in snapshot.pod_groups}
    used = dict.fromkeys(queues.values(), 0.0)
    for pod in snapshot.pods:
        if bool(pod.node) is placed and pod.deleted is None and pod.card is not None:
            used[queues[pod.group_key]] += pod.card.milli / 1000
    return used


def check_receipt(reclaim: Reclaim, *, folder: Path) -> dict[str, Any]:
    """Quota and use before and after, in the row and in the bytes under the hash; returns what the bytes say."""
    said = json.loads(bytes(AuditEntry.objects.get(pk=reclaim.audit_entry_id).payload))["after"]
    before = cards(reclaim, placed=True)
    after = dict(before)
    for victim in reclaim.victims.all():
        after[victim.queue_name] -= victim.cards[CARD]
    # The session may have come before the last pod of the reclaimer was there: it promises to those that were.
    after[reclaim.queue_name] += cards(reclaim, placed=False)[reclaim.queue_name]
    snapshot, _ = inputs.read(reclaim.session)
    quota = {queue.name: queue.card_quota[CARD] / 1000 for queue in snapshot.queues if queue.card_quota}
    for queues in (said["queues"], reclaim.receipt["queues"]):
        assert {row["queue"] for row in queues} == {"serve", "train"}
        for row in queues:
            assert row["quota"] == {CARD: quota[row["queue"]]} == row["base"]
            assert row["before"]["cards"] == {CARD: before[row["queue"]]}
            assert row["after"]["cards"] == {CARD: after[row["queue"]]}
    assert said["votes"] == reclaim.votes
    assert [vote["vote"] for vote in said["votes"] if vote["plugin"] == "capacity-card"] == ["permit"]
    signing = key_services.signing_key()
    outside = Outside(signing.public_key, folder / "no-heads.ndjson")
    outside.heads.touch()
    assert by_command(outside)[0] == 0, by_command(outside)
    assert by_outsider(outside, folder)[0] == 0, by_outsider(outside, folder)
    return said
