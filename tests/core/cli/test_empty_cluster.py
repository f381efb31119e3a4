"""A cluster without nodes decides like any other."""

from tests import builders as b


def test_a_gang_that_enqueue_refuses_waits_for_its_quota(decided):
    full = b.queue("q", {"A": 0}, cpu="500m", **b.TRAINING)
    found = decided(full, b.pod("p", annotations={"scheduling.volcano.sh/queue-name": "q"}, cpu=1))
    assert found.codes == {"podgroup-uid-default-p": "ExceedsMaxQuota"}


def test_so_it_does_when_the_last_node_has_gone(decided):
    queues = [b.queue("web", {"A": 8}, **b.INFERENCE), b.queue("train", {"A": 8}, **b.TRAINING)]
    gangs = [*b.training("t", "train", 1, "A", nodes=["gone"]), *b.inference("s", "web", 2, "A")]
    found = decided(*queues, *gangs)
    assert found.binds == {}
    assert set(found.codes) == {"s"}
