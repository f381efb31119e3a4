"""A team that uses borrowed cards, and their owner who takes them back: receipts come at any size of the demo.

The hall of the medium demo has free cards for days, so that its own tide takes back too rarely for a judgement. Here a
training job fills the only node of a card type; a service whose quota these cards are comes and takes its part. What
the receipts say of it, the auditor compares.
"""

from __future__ import annotations

import random

from tests.crew.cluster import LENT_CARD, NAMESPACE
from tests.crew.platform import gang_of
from tests.crew.scene import LENT, Scene, until

BORROWED = 8
TAKEN = 4
PATIENCE = 90.0
BETWEEN = (3.0, 8.0)


def work(scene: Scene) -> None:
    """One round after the other: lent, taken back, both over."""
    borrower, owner = LENT
    client = scene.client("lender")
    choice, number = random.Random(owner), 0
    while not scene.over():
        number += 1
        job, service = f"{borrower}-{number}", f"{owner}-{number}"
        try:
            scene.cluster.submit(job, borrower, pods=BORROWED, card=LENT_CARD)
            if not until(lambda job=job: scene.cluster.pods_placed(job) >= BORROWED, seconds=PATIENCE):
                scene.note(f"{job} got no {BORROWED} {LENT_CARD} within {PATIENCE:.0f} s")
                continue
            scene.cluster.submit(service, owner, pods=TAKEN, card=LENT_CARD, service=True)
            if not until(lambda service=service: scene.cluster.pods_placed(service) >= TAKEN, seconds=PATIENCE):
                found = gang_of(client, f"{NAMESPACE}/{service}")
                scene.note(f"{service} took no {TAKEN} {LENT_CARD} back within {PATIENCE:.0f} s: {found}")
        finally:
            scene.cluster.end(job)
            scene.cluster.end(service)
        scene.rest(choice.uniform(*BETWEEN))
    client.close()
