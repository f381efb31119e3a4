"""What a session writes beside its binds and evictions: PodGroups, nominations, events, queue figures."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.objects import pod, template
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Unreachable
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import EVENT, NAMESPACE, POD, POD_GROUP, QUEUE, STATEFUL_SET
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.scheduling.models import Decision
from tidesched_web.scheduling.pipeline import events, pod_reasons

OWNER = "9d1b6a53-5c5b-4a55-8a57-1c1fb3a5b0aa"


def plain_pod(name: str, *, annotations: dict[str, str], owner: str = OWNER) -> dict[str, Any]:
    """A pod of a workload whose controller knows no gangs."""
    made, of = pod(name), template(1)
    made["spec"] |= {"containers": of["spec"]["containers"], "priorityClassName": "pc-low"}
    made["metadata"]["annotations"] = {**of["metadata"]["annotations"], **annotations}
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "plain", "uid": owner, "controller": True}
    made["metadata"]["ownerReferences"] = [reference]
    return made


def events_of(stage: Stage, name: str) -> list[dict[str, Any]]:
    found = stage.client.get(EVENT.path(NAMESPACE_NAME), {"fieldSelector": f"involvedObject.name={name}"})
    return list(found["items"])


def test_plain_pods_get_a_podgroup_as_a_controller_would_make_it(stage: Stage) -> None:
    notes = {"scheduling.volcano.sh/queue-name": "train", "volcano.sh/sla-waiting-time": "1h"}
    for index in range(2):
        stage.send(POD.path(NAMESPACE_NAME), plain_pod(f"plain-{index}", annotations=notes))
    stage.sessions_until(lambda: stage.bound("plain") == 2)
    group = stage.group(f"podgroup-{OWNER}")
    assert group["spec"] == {
        "minMember": 1,
        "queue": "train",
        "priorityClassName": "pc-low",
        "minResources": {"cpu": "4000m", "memory": "16384Mi", "nvidia.com/gpu": "1"},
    }
    assert group["metadata"]["annotations"]["volcano.sh/sla-waiting-time"] == "1h"
    assert group["metadata"]["annotations"]["tidesched.io/made-for"] == "StatefulSet/plain"
    assert group["metadata"]["ownerReferences"][0]["uid"] == OWNER
    assert {one["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for one in stage.pods("plain")} == {
        group["metadata"]["name"]
    }
    stage.sessions_until(lambda: (stage.group(group["metadata"]["name"]).get("status") or {}).get("phase") == "Running")
    made = [row for row in stage.server.writes() if row["resource"].startswith("podgroups") and row["code"] == 201]
    assert len(made) == 1


def test_the_namespace_names_the_queue_of_pods_that_name_none(stage: Stage) -> None:
    note = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "train"}}}
    assert stage.client.send("PATCH", NAMESPACE.path(name=NAMESPACE_NAME), note, content_type=MERGE_PATCH).done
    stage.send(POD.path(NAMESPACE_NAME), plain_pod("plain-0", annotations={}))
    stage.sessions_until(lambda: stage.bound("plain") == 1)
    assert stage.group(f"podgroup-{OWNER}")["spec"]["queue"] == "train"


def test_a_podgroup_that_was_deleted_underneath_is_made_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidesched_web.scheduling.pipeline.podgroups.AGAIN_SECONDS", 0.0)
    notes = {"scheduling.volcano.sh/queue-name": "train"}
    stage.send(POD.path(NAMESPACE_NAME), plain_pod("plain-0", annotations=notes))
    path = POD_GROUP.path(NAMESPACE_NAME, f"podgroup-{OWNER}")
    stage.sessions_until(lambda: stage.bound("plain") == 1 and stage.client.send("GET", path).done)
    assert stage.client.send("DELETE", path).done
    stage.sessions_until(lambda: stage.client.send("GET", path).done)


def test_a_podgroup_follows_what_its_workload_says_later_and_leaves_what_others_set(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidesched_web.scheduling.pipeline.podgroups.AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("tidesched_web.scheduling.pipeline.gang_counts.LOOK_SECONDS", 0.0)
    above = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "plain"}, "spec": {"replicas": 2}}
    stage.send(STATEFUL_SET.path(NAMESPACE_NAME), above)
    notes = {"scheduling.volcano.sh/queue-name": "train"}
    for index in range(2):
        stage.send(POD.path(NAMESPACE_NAME), plain_pod(f"plain-{index}", annotations=notes))
    stage.sessions_until(lambda: stage.bound("plain") == 2)
    path, name = STATEFUL_SET.path(NAMESPACE_NAME, "plain"), f"podgroup-{OWNER}"
    submitted = stage.group(name)["metadata"]["annotations"]["tidesched.io/submitted-at"]

    def say(**changes: str | None) -> None:
        named = {
            {"least": "scheduling.volcano.sh/group-min-member", "wait": "volcano.sh/sla-waiting-time"}[key]: text
            for key, text in changes.items()
        }
        patch = {"metadata": {"annotations": named}}
        assert stage.client.send("PATCH", path, patch, content_type=MERGE_PATCH).done

    say(least="2", wait="1h")
    stage.sessions_until(lambda: stage.group(name)["spec"]["minMember"] == 2)
    group = stage.group(name)
    assert group["spec"]["minResources"]["nvidia.com/gpu"] == "2"
    assert group["metadata"]["annotations"]["volcano.sh/sla-waiting-time"] == "1h"
    assert group["metadata"]["annotations"]["tidesched.io/submitted-at"] == submitted, "it keeps its place"
    say(wait=None)
    stage.sessions_until(lambda: "volcano.sh/sla-waiting-time" not in stage.group(name)["metadata"]["annotations"])
    # a foreign note on the PodGroup is no reason to write again and again
    foreign = {"metadata": {"annotations": {"volcano.sh/note": "mine"}}}
    assert stage.client.send("PATCH", POD_GROUP.path(NAMESPACE_NAME, name), foreign, content_type=MERGE_PATCH).done
    for index, phase in enumerate(("Running", "Failed")):
        status = {"status": {"phase": phase}}
        path = POD.path(NAMESPACE_NAME, f"plain-{index}", "status")
        assert stage.client.send("PATCH", path, status, content_type=MERGE_PATCH).done
    stage.sessions_until(lambda: stage.group(name)["status"].get("failed") == 1)
    assert stage.group(name)["status"]["running"] == 1
    for _ in range(3):
        stage.session()
    applied = len([row for row in stage.server.writes() if row["resource"].startswith("podgroups")])
    for _ in range(5):
        stage.session()
    log = [row for row in stage.server.writes() if row["resource"].startswith("podgroups")]
    assert len(log) == applied, "nothing moved, so nothing is written"
    assert stage.group(name)["metadata"]["annotations"]["volcano.sh/note"] == "mine"


def test_who_waits_is_told_why_once_and_counted_on_when_the_numbers_change(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "NUMBERS_SECONDS", 0.0)
    stage.train("first", pods=12)
    stage.sessions_until(lambda: stage.bound("first") == 12)
    stage.train("second", pods=8)
    name = stage.sessions_until(
        lambda: [one["metadata"]["name"] for one in stage.client.get(POD_GROUP.path(NAMESPACE_NAME))["items"]
                 if one["metadata"]["name"].startswith("second")]
    )[0]  # fmt: skip
    told = stage.sessions_until(lambda: events_of(stage, name))
    for _ in range(3):
        stage.session()
    again = events_of(stage, name)
    assert len({one["reason"] for one in again}) == len(again), "one event for each reason"
    assert any(character.isdigit() for character in told[0]["message"])
    assert told[0]["reportingComponent"] == "tidesched"
    assert Decision.objects.filter(kind="event", state="failed").count() == 0
    # a new process knows what was written, and counts on
    stage.leave()
    stage.open("another")
    before = {one["reason"]: one["count"] for one in events_of(stage, name)}
    for _ in range(3):
        stage.session()
    after = {one["reason"]: one["count"] for one in events_of(stage, name)}
    assert all(after[reason] >= count for reason, count in before.items())
    assert len(events_of(stage, name)) == len(after)


def test_a_reclaim_announces_who_goes_and_nominates_who_comes(stage: Stage) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.serve("web", replicas=2)
    stage.sessions_until(lambda: Decision.objects.filter(kind="evict", state="done").exists())
    nominated = stage.sessions_until(
        lambda: (
            [row for row in stage.server.writes() if row["resource"] == "pods/status" and "web" in row["key"]]
            or stage.running("web") == 2
        )
    )
    assert nominated is not True, "they were told where room is made before they could run"
    log = stage.server.writes()
    # The first write of each: a pod that is made again under its name may say soon why it waits.
    told = [row for row in reversed(log) if row["resource"] == "pods/status" and "victim" in row["key"]]
    announced = {row["key"]: row["seq"] for row in told}
    evicted = {
        row["key"]: row["seq"] for row in log if row["resource"] == "pods/eviction" and not row["dry_run"]
    }  # fmt: skip
    assert evicted
    assert all(announced[key] < seq for key, seq in evicted.items())
    stage.sessions_until(lambda: stage.running("web") == 2)
    assert any(one["reason"] == "Evict" for one in stage.client.get(EVENT.path(NAMESPACE_NAME))["items"])


def test_the_figures_of_queues_are_told_and_their_state_is_not_touched(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidesched_web.scheduling.pipeline.statuses.FIGURES_SECONDS", 0.0)

    def status() -> dict[str, Any]:
        return dict(stage.client.get(QUEUE.path(name="train")).get("status") or {})

    stage.train("job", pods=4)
    stage.sessions_until(lambda: (status().get("allocated") or {}).get("nvidia.com/gpu") == "4")
    assert (status()["state"], status()["running"]) == ("Open", 1)
    path = QUEUE.path(name="train", subresource="status")
    assert stage.client.send("PATCH", path, {"status": {"state": "Closing"}}, content_type=MERGE_PATCH).done
    for _ in range(3):
        stage.session()
    assert status()["state"] == "Closing"


def test_a_server_that_goes_away_in_the_middle_of_a_gang_only_costs_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.train("job", pods=6)
    bind, away = ClusterWrites.bind_pod, True

    def spoilt(self: ClusterWrites, namespace: str, name: str, **arguments: Any) -> Outcome:
        if away and name.endswith("-3"):
            return Outcome(OutcomeKind.UNREACHABLE, "Unauthorized", "the token has expired", away=True)
        return bind(self, namespace, name, **arguments)

    monkeypatch.setattr(ClusterWrites, "bind_pod", spoilt)
    with pytest.raises(Unreachable, match="the token has expired"):
        stage.sessions_until(lambda: False)
    assert not Decision.objects.filter(kind="bind", state="failed").exists()
    away = False
    stage.sessions_until(lambda: stage.bound("job") == 6)
    assert not Decision.objects.filter(detail__action="take_back").exists()
    assert Decision.objects.filter(state__in=["decided", "sending"]).count() == 0


def why(stage: Stage, name: str) -> tuple[str, str]:
    """Reason and code of the condition that says why a pod waits."""
    status = next(iter(stage.pods(name)))["status"]
    found = [
        one for one in status.get("conditions") or () if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
    return (found[0]["reason"], found[0]["message"].partition(":")[0]) if found else ("", "")


def test_a_waiting_pod_says_itself_why_it_waits_once_for_each_reason(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_reasons, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(pod_reasons, "AGAIN_SECONDS", 2.0)
    told: list[str] = []
    say = ClusterWrites.say_waiting

    def count(self: ClusterWrites, namespace: str, name: str, **said: Any) -> Outcome:
        told.append(name)
        return say(self, namespace, name, **said)

    monkeypatch.setattr(ClusterWrites, "say_waiting", count)
    stage.train("first", pods=2, cards=8)
    stage.sessions_until(lambda: stage.running("first") == 2)
    notes = {"scheduling.volcano.sh/queue-name": "train"}
    stage.send(POD.path(NAMESPACE_NAME), plain_pod("late-0", annotations=notes))
    stage.sessions_until(lambda: why(stage, "late")[0])
    assert why(stage, "late") == ("WaitingForQuota", "WaitingForQuota")
    (event,) = [one for one in events_of(stage, "late-0") if one["reason"] == "WaitingForQuota"]
    assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "Pod")
    assert "train" in event["message"]
    # The pod says it: neither the next sessions nor another process say it again.
    for _ in range(4):
        stage.session()
    stage.leave()
    stage.open("another")
    for _ in range(4):
        stage.session()
    assert told == ["late-0"]
    # Another reason: said once, when the time since the last one has passed.
    closed = {"status": {"state": "Closed"}}
    assert stage.client.send(
        "PATCH", QUEUE.path(name="train", subresource="status"), closed, content_type=MERGE_PATCH
    ).done
    stage.sessions_until(lambda: why(stage, "late") == ("QueueClosed", "QueueClosed"))
    for _ in range(4):
        stage.session()
    assert told == ["late-0", "late-0"]


def test_a_backlog_of_waiting_pods_is_told_little_by_little(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_reasons, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(pod_reasons, "MOST_AT_ONCE", 2)
    asked: list[int] = []
    send = pod_reasons.PodReasonBook.send

    def count(self: pod_reasons.PodReasonBook, *args: Any, **named: Any) -> int:
        asked.append(send(self, *args, **named))
        return asked[-1]

    monkeypatch.setattr(pod_reasons.PodReasonBook, "send", count)
    stage.train("first", pods=2, cards=8)
    stage.sessions_until(lambda: stage.running("first") == 2)
    notes = {"scheduling.volcano.sh/queue-name": "train"}
    for index in range(5):
        stage.send(POD.path(NAMESPACE_NAME), plain_pod(f"late-{index}", annotations=notes))
    stage.sessions_until(lambda: sum(asked) == 5)
    assert max(asked) == 2
    assert {why(stage, f"late-{index}") for index in range(5)} == {("WaitingForQuota", "WaitingForQuota")}
