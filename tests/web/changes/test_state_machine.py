"""Real concurrency on a real PostgreSQL: eight threads edit, apply, approve, roll back, turn plans and lose nodes.

Whatever the order: no sum is pushed (further) beyond its ceiling, no edit is lost, none deadlocks, the chains verify,
and the audit log has the intent that holds.
"""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest
from django.db import connections

from tests.web.changes import ground as ground_module
from tests.web.changes.ground import A100, H200, intent_of_the_log
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.verification import verify_all
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.selectors import reading_of, surroundings_of
from tidesched_web.changes.tree_check import ratios_of, tree_of
from tidesched_web.clusters.models import CardType
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.models import QuotaTree
from tidesched_web.quota.tree_rules import breaches

THREADS, STEPS = 8, 20
QUEUES = ("acme-online", "acme-train", "rival-online", "rival-train")
TENANTS = {"acme-online": "acme", "rival-online": "rival", "acme-train": "acme", "rival-train": "rival"}
# What may answer a step; anything else is a bug. The last two: what is edited has gone meanwhile, or is made in part.
EXPECTED = {"quota_breach", "conflict", "permission_denied", "in_use", "stale", "not_found", "invalid", "against_rules"}
PLAN = {
    "enabled": True,
    "time_zone": "Europe/Berlin",
    "layers": [
        {
            "name": "night",
            "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
            "start": "22:00",
            "end": "06:00",
            "quota": {"acme-online": {H200: {"add": -2}}, "rival-train": {H200: {"add": 1}}},
        }
    ],
}


def excess(cluster):
    """By how much each sum is exceeded now."""
    reading = reading_of(cluster)
    around = surroundings_of(cluster, reading)
    tree = tree_of(reading.documents, around.hardware, ratios_of(reading.documents))
    return {key: found.excess for key, found in breaches(tree).items()}


class Actor:
    """One thread with its own connections and its own seeded choices."""

    def __init__(self, ground, number):
        self.ground, self.number, self.chance = ground, number, random.Random(number)
        self.who = ("root", "second", "root", "owner", "second", "root", "rival", "second")[number % 8]
        self.errors: list[BaseException] = []
        self.answers: Counter[str] = Counter()

    def run(self, start):
        try:
            start.wait()
            for _ in range(STEPS):
                self.step()
        except BaseException as error:  # noqa: BLE001, told by the test
            self.errors.append(error)
        finally:
            connections.close_all()

    def step(self):
        act = self.chance.choice(
            (self.edit, self.edit, self.edit, self.draft_and_apply, self.approve, self.roll_back, self.tick, self.lose)
        )
        try:
            act()
            self.answers["done"] += 1
        except DomainError as error:
            if error.code not in EXPECTED:
                raise
            self.answers[error.code] += 1

    def edits(self):
        kind = self.chance.randrange(6)
        queue = self.chance.choice(QUEUES)
        if kind == 0:
            names = self.chance.sample(QUEUES, 2)
            return {f"queue/{name}": {"card_quota": {H200: self.chance.randrange(0, 10)}} for name in names}
        if kind == 1:
            name = f"extra-{self.number}-{self.chance.randrange(3)}"
            tenant = TENANTS[queue]
            if f"queue/{name}" in self.ground.tree() and self.chance.random() < 0.5:
                return {f"queue/{name}": None}
            made = {"service_type": "inference", "tenant": tenant, "project": "chat"}
            return {f"queue/{name}": made | {"card_quota": {A100: self.chance.randrange(0, 5)}}}
        if kind == 2:
            ceiling = self.chance.choice(({H200: self.chance.randrange(4, 12), A100: 4}, None))
            return {f"tenant/{TENANTS[queue]}": {"quota": {"inference": {"card_quota": ceiling}}}}
        if kind == 3:
            return {f"queue/{queue}": {"weight": self.chance.randrange(1, 9)}}
        if kind == 4:
            return {"rules/cluster": {"overcommit_inference_percent": self.chance.choice((80, 100, 130))}}
        return {"tide-plan/nightly": self.chance.choice((PLAN, {"enabled": False}, {"enabled": True, **PLAN}))}

    def edit(self):
        edits = self.edits()
        done = self.ground.carry_out(edits, who=self.who, reason=f"by {self.number}")
        assert done.state in ("applied", "waiting"), done.state

    def draft_and_apply(self):
        change = self.ground.draft(self.edits(), who=self.who, reason=f"drafted by {self.number}")
        changes.plan(change=change, access=self.ground.access(self.who))
        changes.apply(change=change, access=self.ground.access(self.who))

    def approve(self):
        flag = self.chance.choice((True, False))
        if self.who in ("root", "second") and self.chance.random() < 0.3:
            self.ground.carry_out({"tenant/acme": {"approval_required": flag}}, who=self.who)
        waiting = QuotaChange.objects.filter(state=ChangeState.WAITING).order_by("?").first()
        if waiting is not None:
            changes.approve(change=waiting, access=self.ground.access(self.who))

    def roll_back(self):
        written = QuotaChange.objects.filter(state=ChangeState.APPLIED).order_by("?").first()
        if written is None:
            return
        back = changes.roll_back(change=written, access=self.ground.access(self.who))
        changes.apply(change=back, access=self.ground.access(self.who))

    def tick(self):
        changes.sweep()

    def lose(self):
        """A node goes or comes back, under everybody's quotas."""
        CardType.objects.filter(name=H200).update(hardware=self.chance.choice((8, 12, 16)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
def test_eight_people_at_once_leave_a_sound_tree_and_a_log_that_tells_it():
    ground = ground_module.build()
    actors = [Actor(ground, number) for number in range(THREADS)]
    start = threading.Barrier(THREADS)
    threads = [threading.Thread(target=actor.run, args=(start,)) for actor in actors]
    version = QuotaTree.objects.get().version
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(500)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    assert [error for actor in actors for error in actor.errors] == []
    answers = sum((actor.answers for actor in actors), Counter())
    assert answers["done"] > THREADS, answers
    written = QuotaChange.objects.filter(committed_at__isnull=False)
    # Each write counted the version once: none was written over another's.
    assert QuotaTree.objects.get().version == version + written.count()
    assert sorted(written.values_list("tree_version", flat=True)) == list(
        range(version + 1, version + 1 + written.count())
    )
    # What the log says last of each object is what holds.
    tree = ground.tree()
    for key, document in intent_of_the_log(ground).items():
        assert tree.get(key) == document, key
    # The log has each written change once, with all its objects, and no other.
    assert AuditEntry.objects.filter(action="quota_change.apply").count() == written.count()
    assert all(report.intact for report in verify_all())
    # Every entry's before is what the entry before it left: no lost update.
    last: dict[tuple[str, str], object] = {}
    entries = AuditEntry.objects.filter(chain=f"cluster:{ground.cluster.pk}", seq__gt=ground.seq).order_by("seq")
    for entry in entries.exclude(object_type="quota_change"):
        name = (entry.object_type, entry.object_label)
        assert last.get(name, entry.before) == entry.before, name
        last[name] = entry.after
    print(dict(answers), "changes", written.count())


@pytest.mark.django_db(transaction=True)
def test_the_rule_stays_monotone_under_every_single_step():
    """One writer, the same acts: a sum that is exceeded never grows by an edit, whatever the hardware did before."""
    ground = ground_module.build()
    actor = Actor(ground, 0)
    for number in range(40):
        actor.chance = random.Random(1000 + number)
        known = excess(ground.cluster)
        before = ground.tree()
        try:
            actor.edit()
        except DomainError:
            assert ground.tree() == before
        for key, by in excess(ground.cluster).items():
            assert by <= known.get(key, 0), key
        if number % 7 == 3:
            actor.lose()
