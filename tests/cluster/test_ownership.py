"""Who set which field of an object that is to be applied, by its ``managedFields``; without a server."""

from __future__ import annotations

from typing import Any

from tidesched_web.clusters.kubernetes.ownership import standing
from tidesched_web.simcluster.field_ownership import apply, record_update

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


def queue(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q", "annotations": {"volcano.sh/card.quota": "{}"}},
        "spec": spec,
    }


def edited(live: Json, manager: str, **spec: Any) -> Json:
    """As ``kubectl edit`` leaves it."""
    new = {**live, "metadata": {**live["metadata"]}, "spec": {**live["spec"], **spec}}
    record_update(new, live, manager, NOW)
    return new


def applied(live: Json | None, wanted: Json, *, force: bool = False) -> Json:
    return apply(live, wanted, "tidesched", NOW, force=force)


def test_what_was_applied_stands_as_wanted() -> None:
    live = applied(None, queue(weight=2, reclaimable=True))
    assert standing(queue(weight=2, reclaimable=True), live).same
    assert not standing(queue(weight=3, reclaimable=True), live).same
    assert not standing(queue(weight=2), live).same, "a field is to be given up"
    assert not standing(queue(weight=2), None).same


def test_another_managers_own_fields_are_none_of_ours() -> None:
    live = edited(applied(None, queue(weight=2)), "kubectl-edit", capability={"cpu": "8"})
    assert standing(queue(weight=2), live).same


def test_a_field_that_somebody_set_otherwise_is_contested() -> None:
    live = edited(applied(None, queue(weight=2, priority=1)), "kubectl-edit", weight=9)
    stands = standing(queue(weight=3, priority=5), live)
    assert stands.contested == ((".spec.weight", ("kubectl-edit",)),)
    assert stands.message == "Not overwritten: .spec.weight is set by kubectl-edit"


def test_a_field_that_was_adopted_as_it_was_may_be_changed_later() -> None:
    made = edited({"metadata": {"name": "q"}, "spec": {}}, "kubectl-create", weight=4)
    adopted = applied(made, queue(weight=4))
    assert standing(queue(weight=4), adopted).same
    stands = standing(queue(weight=5), adopted)
    assert (stands.shared, stands.contested) == (True, ())
    assert standing(queue(weight=5), made).contested, "not adopted: it is theirs"


def test_the_same_in_other_words_is_no_contest() -> None:
    made = edited({"metadata": {"name": "q"}, "spec": {}}, "kubectl-create", capability={"cpu": "8", "memory": "1Gi"})
    stands = standing(queue(capability={"cpu": "8000m", "memory": "1024Mi"}), made)
    assert (stands.same, stands.shared, stands.contested) == (False, True, ())
    assert standing(queue(capability={"cpu": "9000m", "memory": "what"}), made).contested


def test_what_is_false_may_be_left_out_by_the_server() -> None:
    wanted = {"kind": "PriorityClass", "metadata": {"name": "p"}, "value": 5, "globalDefault": False}
    live = applied(None, wanted)
    del live["globalDefault"]
    assert standing(wanted, live).same
    assert not standing({**wanted, "globalDefault": True}, live).same
