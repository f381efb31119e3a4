"""What a pod asks for, and what of it depends on the rest of the cluster."""

import pytest

from scheduler_core.model.cards import CardRequest
from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import PodPhase
from tests import builders as b
from tests.builders import at, node, owned_by, pod, pod_group, priority_class, queue, snapshot

H200, V100 = node("h", "NVIDIA-H200", 8), node("v", "Tesla-V100", 8)


def the_pod(body, *others):
    return b.taken(b.listing(body, *others)["items"]).pods[0]


def problem_of(body, *others):
    return b.taken(b.listing(body, *others)["items"]).pod_groups[0].problem


def containers(*specs):
    return {"containers": [{"resources": spec} for spec in specs]}


class TestRequests:
    def test_containers_add_up_and_limits_stand_in_for_requests(self):
        spec = containers({"requests": {"cpu": "250m", "memory": "1Gi"}}, {"limits": {"cpu": 1, "memory": "1"}})
        taken = the_pod(pod("p", spec=spec))
        assert (taken.cpu_milli, taken.memory_mib) == (1250, 1025)

    def test_the_largest_init_container_counts_beside_earlier_sidecars(self):
        spec = containers({"requests": {"cpu": 1}})
        spec["initContainers"] = [
            {"resources": {"requests": {"cpu": 3}}},
            {"resources": {"requests": {"cpu": 2}}, "restartPolicy": "Always"},
            {"resources": {"requests": {"cpu": 4}}},
        ]
        assert the_pod(pod("p", spec=spec)).cpu_milli == 6000

    def test_sidecars_run_beside_the_containers(self):
        spec = containers({"requests": {"cpu": 4}})
        spec["initContainers"] = [{"resources": {"requests": {"cpu": 2}}, "restartPolicy": "Always"}]
        spec["overhead"] = {"cpu": "250m", "memory": "64Mi"}
        taken = the_pod(pod("p", spec=spec))
        assert (taken.cpu_milli, taken.memory_mib) == (6250, 64)

    def test_storage_and_extended_resources_are_counted(self):
        taken = the_pod(
            pod("p", resources={"ephemeral-storage": "10Gi", "example.com/fpga": 2, "hugepages-2Mi": "4Mi"})
        )
        assert taken.scalars == {"ephemeral-storage": 10240, "example.com/fpga": 2, "hugepages-2Mi": 4}

    @pytest.mark.parametrize(
        ("amount", "code"), [("-1", "bad_quantity"), ("lots", "bad_quantity"), (1.5, "bad_quantity")]
    )
    def test_a_bad_amount_names_its_place(self, amount, code):
        with pytest.raises(BadInput) as caught:
            snapshot(pod("p", resources={"nvidia.com/gpu": amount}))
        assert caught.value.code == code
        assert caught.value.path == 'items[0].spec.containers[0].resources.requests["nvidia.com/gpu"]'


class TestCards:
    def test_a_named_card_is_counted_by_its_resource(self):
        taken = the_pod(pod("p", card="NVIDIA-H200", count=4), H200)
        assert taken.card == CardRequest(("NVIDIA-H200",), "nvidia.com/gpu", 4000)
        assert taken.scalars == {}

    def test_a_choice_keeps_its_order(self):
        taken = the_pod(pod("p", card="Tesla-V100|NVIDIA-H200", count=2), H200, V100)
        assert taken.card.names == ("Tesla-V100", "NVIDIA-H200")
        assert taken.card.key == "Tesla-V100|NVIDIA-H200"

    def test_an_unknown_first_choice_does_not_spoil_the_second(self):
        taken = the_pod(pod("p", card="NVIDIA-B300|NVIDIA-H200", count=2), H200)
        assert (taken.card.resource, taken.card.milli) == ("nvidia.com/gpu", 2000)

    def test_a_card_that_no_node_has_is_still_a_request(self):
        taken = the_pod(pod("p", card="NVIDIA-B300", count=2))
        assert taken.card == CardRequest(("NVIDIA-B300",), "nvidia.com/gpu", 2000)

    def test_an_unknown_slice_is_counted_by_the_resource_in_its_name(self):
        taken = the_pod(pod("p", card="NVIDIA-H200/mig-1g.18gb-mixed", count=3))
        assert (taken.card.resource, taken.card.milli) == ("nvidia.com/mig-1g.18gb", 3000)

    def test_no_name_takes_the_resource_from_anywhere(self):
        taken = the_pod(pod("p", resources={"nvidia.com/gpu": 2}), H200, node("other", "NVIDIA-A100", 8))
        assert taken.card == CardRequest((), "nvidia.com/gpu", 2000)

    def test_the_only_card_that_offers_the_resource_is_meant(self):
        taken = the_pod(pod("p", resources={"nvidia.com/gpu": 2}), H200)
        assert taken.card == CardRequest(("NVIDIA-H200",), "nvidia.com/gpu", 2000, written=False)

    def test_a_resource_that_counts_no_card_anywhere_is_a_scalar(self):
        taken = the_pod(pod("p", resources={"nvidia.com/gpu": 2}), node("n", extended={"nvidia.com/gpu": 8}))
        assert (taken.card, taken.scalars) == (None, {"nvidia.com/gpu": 2})

    def test_a_share_needs_no_resource(self):
        taken = the_pod(pod("p", card="NVIDIA-H200", milli=460), H200)
        assert taken.card == CardRequest(("NVIDIA-H200",), "", 460)
        assert taken.card.is_share

    def test_zero_cards_are_no_request(self):
        assert the_pod(pod("p", resources={"nvidia.com/gpu": 0}), H200).card is None

    def test_card_indices_are_read_of_a_bound_pod_only(self):
        notes = {"tidesched.io/card-indices": "0,3"}
        assert the_pod(pod("p", card="NVIDIA-H200", count=2, node="h", annotations=notes), H200).card_indices == (0, 3)
        assert the_pod(pod("p", card="NVIDIA-H200", count=2, annotations=notes), H200).card_indices == ()

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (pod("p", annotations={"volcano.sh/card.name": "NVIDIA-H200"}), "asks for no nvidia.com/gpu"),
            (pod("p", annotations={"tidesched.io/card-milli": "460"}), "of which card is the share?"),
            (pod("p", card="NVIDIA-H200", annotations={"tidesched.io/card-milli": "460"}), "one of them has to go"),
            (pod("p", card="NVIDIA-H200", milli=1000), "is not a share of one card"),
            (pod("p", card="NVIDIA-H200", milli=-5), "is not a share of one card"),
            (pod("p", annotations={"volcano.sh/task-priority": "first"}), "is not a whole number"),
        ],
    )
    def test_a_request_that_cannot_be_meant_makes_its_gang_misconfigured(self, body, says):
        assert says in problem_of(body, H200)

    def test_cards_of_two_kinds_in_one_pod(self):
        mig = node("m", "NVIDIA-H200", mig={"1g.18gb": 7})
        body = pod("p", card="NVIDIA-H200", resources={"nvidia.com/mig-1g.18gb": 1})
        assert "cards of one kind" in problem_of(body, H200, mig)

    def test_a_choice_over_two_resources(self):
        mig = node("m", "NVIDIA-H200", mig={"1g.18gb": 7})
        assert "share one resource" in problem_of(pod("p", card="NVIDIA-H200|NVIDIA-H200/mig-1g.18gb-mixed"), H200, mig)


class TestPriority:
    def test_the_spec_wins_over_the_class_and_the_annotation_over_both(self):
        classes = priority_class("c", 7)
        assert the_pod(pod("p", priority="c"), classes).priority == 7
        assert the_pod(pod("p", priority="c", spec={"priority": 9}), classes).priority == 9
        notes = {"volcano.sh/task-priority": "11"}
        assert the_pod(pod("p", priority="c", annotations=notes), classes).priority == 11

    def test_the_smallest_global_default_stands_in(self):
        classes = [priority_class("a", 5, default=True), priority_class("b", 3, default=True)]
        assert the_pod(pod("p"), classes).priority == 3

    def test_an_unknown_class_is_said(self):
        taken = snapshot(pod("p", priority="nope"))
        assert taken.pods[0].priority == 0
        assert taken.warnings == ("PriorityClass nope does not exist; the default value 0 is used",)

    def test_system_classes_are_known(self):
        assert the_pod(pod("p", priority="system-node-critical")).priority == 2_000_001_000


class TestPlacement:
    def test_an_empty_term_matches_nothing_and_is_left_out(self):
        terms = [{}, {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        taken = the_pod(pod("p", spec={"affinity": affinity}))
        assert [[r.key for r in term] for term in taken.required_nodes] == [["zone"]]

    def test_only_empty_terms_match_no_node(self):
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
        assert the_pod(pod("p", spec={"affinity": affinity})).required_nodes == ()
        assert the_pod(pod("p")).required_nodes is None

    def test_an_unknown_operator_names_its_place(self):
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "Is"}]}]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        with pytest.raises(BadInput, match="not an operator") as caught:
            snapshot(pod("p", spec={"affinity": affinity}))
        assert caught.value.path.endswith("nodeSelectorTerms[0].matchFields[0].operator")

    def test_host_ports_and_claims(self):
        spec = {
            "containers": [{"ports": [{"containerPort": 80}, {"hostPort": 8080, "protocol": "UDP"}]}],
            "volumes": [
                {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "tmp", "emptyDir": {}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            ],
        }
        taken = the_pod(pod("p", spec=spec))
        assert [(p.port, p.protocol) for p in taken.host_ports] == [(8080, "UDP")]
        assert taken.claims == ("data", "p-scratch")


class TestState:
    def test_a_leaving_pod(self):
        taken = the_pod(pod("p", node="h", started=5, deleted=60))
        assert taken.phase is PodPhase.RUNNING
        assert taken.deleted - taken.started == 55

    def test_a_missing_phase_is_pending(self):
        body = pod("p")
        del body["status"]
        assert the_pod(body).phase is PodPhase.PENDING

    def test_an_unknown_phase_is_an_error(self):
        with pytest.raises(BadInput) as caught:
            snapshot(pod("p", phase="Sleeping"))
        assert caught.value.path == "items[0].status.phase"

    def test_an_unreadable_preemptable_protects_nobody_by_accident(self):
        assert the_pod(pod("p", preemptable="perhaps")).preemptable is False
        assert the_pod(pod("p", preemptable="true")).preemptable is True
        assert the_pod(pod("p")).preemptable is None

    def test_unquoted_yaml_values_mean_what_was_written(self):
        taken = the_pod(pod("p", annotations={"volcano.sh/preemptable": False}))
        assert taken.preemptable is False

    def test_a_pod_of_another_scheduler_takes_room_and_has_no_gang(self):
        taken = snapshot(pod("p", "g", scheduler="default-scheduler", node="h"), pod_group("g", "q"), queue("q"), H200)
        assert taken.pods[0].group == ""

    def test_a_bad_time_names_its_place(self):
        body = pod("p")
        body["metadata"]["creationTimestamp"] = "yesterday"
        with pytest.raises(BadInput) as caught:
            snapshot(body)
        assert (caught.value.code, caught.value.path) == ("bad_timestamp", "items[0].metadata.creationTimestamp")

    def test_the_owner_is_the_controller(self):
        body = pod("p")
        body["metadata"]["ownerReferences"] = [{"kind": "Note", "name": "n"}, owned_by("ReplicaSet", "rs")]
        assert the_pod(body).owner.kind == "ReplicaSet"


def test_latest_is_the_latest_time_of_any_object():
    taken = snapshot(node("n", created=10), pod("p", node="n", created=20, started=70), pod_group("g", "q", created=40))
    assert taken.latest == pytest.approx(__import__("datetime").datetime.fromisoformat(at(70)).timestamp())
