"""An edit tried out on a snapshot: what it is said to do is what the next session does."""

from __future__ import annotations

import os
import random

import msgspec
import pytest

from scheduler_core.model.cards import CardType
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.resources import Amount
from scheduler_core.serde.kubernetes import SnapshotBuilder
from tests import builders as b
from tests.core.small_cluster import H, decide, gang, inference, node, policy, service, snapshot, training
from tests.properties.clusters import random_cluster
from tidesched_web.changes import impact_sight
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.console.impact_view import view_of
from tidesched_web.engine import bridge, inputs
from tidesched_web.engine.edits import Edit, edited, read_edit
from tidesched_web.engine.flood import flood
from tidesched_web.engine.following import Follower
from tidesched_web.engine.what_if import GAINS, LISTS, Picture, cut, impact, try_out

ROUNDS = int(os.environ.get("RANDOM_WHAT_IFS", "40"))


def quota_edit(found, **quotas: float) -> Edit:
    """Other quotas of H200 for some queues, as manifests."""
    objects = []
    for name, cards in quotas.items():
        old = next(one for one in found.queues if one.name == name)
        objects.append(
            {
                "kind": "Queue",
                "name": name,
                "before": manifest(old, old.card_quota),
                "after": manifest(old, {H: cards * 1000}),
            }
        )
    return read_edit(objects)


def manifest(old, quota):
    return manifests.queue(
        old.name, service_type=old.service_type, weight=1, priority=old.priority, reclaimable=old.reclaimable,
        card_quota={card: milli // 1000 for card, milli in (quota or {}).items()},
    )  # fmt: skip


def picture(found, rules=None) -> Picture:
    return Picture(found, rules or policy(), now=1000.0, memory=None, workspace=bridge.Workspace())


def names(rows) -> list[str]:
    return [row["gang"].removeprefix("ns/") for row in rows]


def test_more_quota_starts_the_gang_that_waits_for_it() -> None:
    found = snapshot(
        [node("a"), node("b")],
        [training("training", {H: 8})],
        gang("runs", 8, 1, "training", on=["a"] * 8),
        gang("waits", 8, 1, "training"),
    )
    told = impact(try_out(picture(found), quota_edit(found, training=16)))
    assert names(told["gangs_run"]) == ["waits"]
    assert told["gangs_run"][0]["becomes"] == "running"
    assert told["gangs_run"][0]["reason_before"]["code"] == "WaitingForQuota"
    assert told["gangs_run"][0]["cards"] == {H: 8}
    assert not any(told[name] for name in told if name != "gangs_run")


@pytest.mark.parametrize(
    ("roles", "list_name"),
    [({}, "gangs_run"), ({"worker": 8}, "gangs_run"), ({"main": 1, "worker": 7}, "gangs_admitted")],
)
def test_a_job_that_has_no_pods_before_it_is_admitted_runs_where_its_pods_are_known(roles, list_name: str) -> None:
    """Volcano names the least of each role; what a pod of one of several roles asks for is not in the PodGroup."""
    asks = {
        "min_task_member": roles,
        "card_request": {H: 8000},
        "min_resources": Amount(cpu_milli=8000, memory_mib=8192),
        "waits_for_admission": True,
    }
    group, _pods = gang("waits", 8, 1, "training", phase=GangPhase.PENDING, group=asks)
    found = snapshot([node("a")], [training("training", {H: 0})], (group, []))
    found = msgspec.structs.replace(found, card_types=(CardType(name=H, resource="nvidia.com/gpu"),))
    lists = impact(try_out(picture(found), quota_edit(found, training=8)))
    assert {name: names(lists[name]) for name in GAINS if lists[name]} == {list_name: ["waits"]}


def test_less_quota_costs_a_gang_its_place_and_is_exceeded() -> None:
    found = snapshot(
        [node("a"), node("b")],
        [training("training", {H: 16})],
        gang("runs", 8, 1, "training", on=["a"] * 8),
        gang("waits", 8, 1, "training"),
    )
    told = impact(try_out(picture(found), quota_edit(found, training=6)))
    assert names(told["gangs_lose"]) == ["waits"]
    assert told["gangs_lose"][0]["was"] == "running"
    assert told["gangs_lose"][0]["reason"]["code"] == "ExceedsMaxQuota"
    assert told["queues_over"] == [
        {"queue": "training", "service_type": "", "resource": H, "quota_before": 16, "quota": 6, "in_use": 8, "over": 2}
    ]


def test_inference_that_may_have_more_takes_it_back_at_the_next_session() -> None:
    found = snapshot(
        [node("a")],
        [
            inference("inference", {H: 0}, service_type="inference"),
            training("training", {H: 8}, service_type="training"),
        ],
        gang("train", 8, 1, "training", on=["a"] * 8),
        service("serve", 1, 2),
    )
    told = impact(try_out(picture(found), quota_edit(found, inference=4)))
    assert names(told["reclaimed_next"]) == ["train"]
    row = told["reclaimed_next"][0]
    assert (row["reclaimer"], row["reclaimer_queue"], row["cards"], row["pods"]) == ("ns/serve", "inference", {H: 8}, 8)
    assert [(row["gang"], row["becomes"]) for row in told["gangs_promised"]] == [("ns/serve", "promised")]
    assert told["gangs_lose"] == []  # a gang that is evicted is named once


def test_a_gang_whose_job_would_fail_by_it_is_named_to_its_own_side() -> None:
    spent = gang("train", 8, 1, "training", on=["a"] * 8, group={"last_restart": True})
    queues = [
        inference("inference", {H: 0}, service_type="inference"),
        training("training", {H: 8}, service_type="training"),
    ]
    found = snapshot([node("a")], queues, spent, service("serve", 1, 2))
    told = cut(impact(try_out(picture(found), quota_edit(found, inference=4))))
    (row,) = told["reclaimed_next"]
    assert row["last_restart"] is True
    (entry,) = next(part for part in view_of(told).sections if part.key == "reclaimed_next").entries
    assert entry.note.endswith("its last restart: the job fails")
    own, other = (impact_sight._row("reclaimed_next", row, {queue}) for queue in ("training", "inference"))
    assert own is not None
    assert own["last_restart"] is True
    assert other is not None
    assert (other["gang"], other["cards"]) == ("ns/train", None)
    assert "last_restart" not in other


def test_an_edit_that_says_the_same_does_nothing() -> None:
    found = snapshot([node("a")], [training("training", {H: 4})], gang("waits", 8, 1, "training"))
    base = picture(found)
    for edit in (Edit(), quota_edit(found, training=4)):
        trial = try_out(base, edit)
        assert trial.same
        assert not any(impact(trial).values())
        told = flood(trial)
        assert told["flood"]["before"] == told["flood"]["after"]
        assert told["reclaimed_at_flood"] == told["spared_at_flood"] == []


def test_a_new_queue_a_closed_one_and_another_policy() -> None:
    found = snapshot([node("a")], [training("training", {H: 8})], gang("waits", 4, 1, "training"))
    after = {**manifest(found.queues[0], found.queues[0].card_quota), "status": {"state": "Closing"}}
    before = manifest(found.queues[0], found.queues[0].card_quota)
    closed = read_edit([{"kind": "Queue", "name": "training", "before": before, "after": after}])
    told = impact(try_out(picture(found), closed))
    assert [row["reason"]["code"] for row in told["gangs_lose"]] == ["QueueClosed"]
    made = read_edit(
        [{"kind": "Queue", "name": "new", "before": None, "after": {**before, "metadata": {"name": "new"}}}]
    )
    assert [one.name for one in edited(found, made).queues] == ["new", "training"]
    assert not any(impact(try_out(picture(found), made)).values())
    idle = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n'
    told = impact(try_out(picture(found), Edit(policy=idle)))
    assert names(told["gangs_lose"]) == ["waits"]


def test_a_priority_class_moves_the_gangs_that_name_it() -> None:
    found = snapshot(
        [node("a", 4)],
        [training("training", {H: 4})],
        gang("first", 4, 1, "training", group={"priority": 20, "priority_class": "pc-a"}),
        gang("second", 4, 1, "training", group={"priority": 10, "priority_class": "pc-b"}),
    )
    builder = SnapshotBuilder()
    before = manifests.priority_class("pc-b", value=10, global_default=False, preemption_policy="Never")
    builder.upsert(before)
    found = msgspec.structs.replace(found, priority_classes=builder.build().priority_classes)
    edit = read_edit([{"kind": "PriorityClass", "name": "pc-b", "before": before, "after": {**before, "value": 30}}])
    told = impact(try_out(picture(found), edit))
    assert (names(told["gangs_run"]), names(told["gangs_lose"])) == (["second"], ["first"])


def test_a_flood_takes_what_training_has_borrowed() -> None:
    found = snapshot(
        [node("a"), node("b")],
        [
            inference("inference", {H: 4}, service_type="inference"),
            training("training", {H: 16}, service_type="training"),
        ],
        service("serve", 2, 1, on=["a"] * 2),
        gang("one", 6, 1, "training", on=["a"] * 6),
        gang("two", 8, 1, "training", on=["b"] * 8),
    )
    told = flood(try_out(picture(found), quota_edit(found, inference=12)))
    assert told["flood"]["before"]["claims"] == {"inference": {H: 2}}
    assert told["flood"]["after"]["claims"] == {"inference": {H: 10}}
    assert told["flood"]["before"]["gangs"] == 1
    assert told["flood"]["after"]["gangs"] == 2
    assert len(told["reclaimed_at_flood"]) == 1
    assert told["reclaimed_at_flood"][0]["reclaimer"] == ""
    assert told["reclaimed_at_flood"][0]["reclaimer_queue"] == "inference"
    assert told["flood"]["after"]["unserved"] == {}


def test_lists_are_cut_and_their_length_is_kept() -> None:
    told = cut({"gangs_run": [{"gang": str(number)} for number in range(1000)]})
    assert (len(told["gangs_run"]), told["counts"]) == (200, {"gangs_run": 1000})
    assert set(LISTS) >= {"gangs_run"}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_what_is_said_is_what_a_session_from_nothing_decides(seed: int) -> None:
    """Random clusters and random quotas: a fork of loaded tables decides as a session that starts with none."""
    rng = random.Random(seed)
    objects, options, now = random_cluster(rng)
    found, rules = b.snapshot(objects), b.founding_policy(**options)
    base = Picture(found, rules, now=now, memory=None, workspace=bridge.Workspace())
    quotas = {
        one.name: msgspec.structs.replace(
            one, card_quota={card: rng.choice([0, 1000, 4000, 16000]) for card in one.card_quota or {}}
        )
        for one in found.queues
        if one.card_quota and rng.random() < 0.5
    }
    edit = Edit(queues=dict(quotas), queues_before={one.name: one for one in found.queues})
    trial = try_out(base, edit)
    fresh = decide(edited(found, edit), rules, now=base.now)
    assert bridge.result_hash(trial.after) == bridge.result_hash(fresh)
    assert bridge.result_hash(base.before) == bridge.result_hash(decide(found, rules, now=base.now))
    told = impact(trial)
    starts = {row["gang"] for name in GAINS for row in told[name]}
    bound = {one.name: one.bound for one in trial.before.podgroups}
    assert {one.name for one in fresh.podgroups if one.bound > bound[one.name]} <= starts
    again = try_out(base, Edit(queues={one.name: one for one in found.queues}))
    assert again.same


def test_following_stored_inputs_gives_the_very_snapshots() -> None:
    """Full inputs and differences, in any succession: equal snapshots, and unchanged pods stay the same objects."""
    rng = random.Random(7)
    gangs = {f"g{number:02}": gang(f"g{number:02}", 3, 1, "training") for number in range(30)}

    def now():
        return snapshot([node("a")], [training()], *gangs.values())

    base, base_id, follower = now(), 1, Follower()
    assert follower.needs_base(1)
    read = follower.read_full(1, inputs.FULL, inputs.encode_full(base))
    assert read == base
    for round_ in range(40):
        for name in rng.sample(sorted(gangs), 3):
            if rng.random() < 0.3:
                del gangs[name]
            else:
                gangs[name] = gang(name, 3, 1, "training", on=["a"] * 3, started=float(round_))
        if rng.random() < 0.3:
            gangs[f"n{round_:02}"] = gang(f"n{round_:02}", 2, 1, "training")
        found = now()
        if round_ % 13 == 12:
            base, base_id = found, base_id + 1
            read = follower.read_full(base_id, inputs.FULL, inputs.encode_full(found))
        else:
            same = {pod.key: pod for pod in read.pods}
            read = follower.read_difference(inputs.encode_difference(found, base))
            kept = sum(same.get(pod.key) is pod for pod in read.pods)
            assert kept >= len(read.pods) - 12
        assert read == found, round_
    assert not follower.needs_base(base_id)
