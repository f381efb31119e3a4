"""From trace to workloads: scale, compression, tide, gangs, queues."""

import random

import numpy as np
import pytest

from scheduler_core.model.cards import NodeCards
from scheduler_core.model.errors import BadInput
from scheduler_core.model.node import Node
from scheduler_core.model.queue import Queue
from scheduler_core.simulator.arrivals import draw_arrivals, make_workloads
from scheduler_core.simulator.placement import QueueDraw, queues_by_model
from scheduler_core.simulator.traces.openb_pods import TraceTask
from scheduler_core.simulator.traces.tide_curve import TideCurve

NODES = (
    Node(name="g", cpu_milli=96_000, memory_mib=400_000, cards=(NodeCards("G2", "nvidia.com/gpu", 8),)),
    Node(name="t", cpu_milli=96_000, memory_mib=400_000, cards=(NodeCards("T4", "nvidia.com/gpu", 2),)),
)
TIDE = TideCurve(np.array([0.0, 50.0, 100.0]), np.array([0.0, 4.0, 0.0]))


def task(name, kind="training", milli=1000, models=(), created=0.0, life=600.0, cpu=4000):
    return TraceTask(
        name=name, cpu_milli=cpu, memory_mib=1024, card_milli=milli, models=models, service_type=kind,
        priority_class="pc-low", created=created, life=life,
    )  # fmt: skip


def tasks(count, **kinds):
    return tuple(task(f"p{i:04d}", created=100.0 * i, **kinds) for i in range(count))


def drawn(trace, *, scale=1.0, seconds=3600.0, tide=None, seed=1):
    return draw_arrivals(trace, scale=scale, seconds=seconds, tide=tide, rng=random.Random(seed))


@pytest.mark.parametrize(("scale", "count"), [(0.5, 10), (1.0, 20), (2.5, 50)])
def test_scale_multiplies_the_number_of_tasks_and_no_name_comes_twice(scale, count):
    arrivals = drawn(tasks(20), scale=scale)
    assert len({arrival.name for arrival in arrivals}) == len(arrivals) == count
    if scale >= 1:
        assert {f"p{i:04d}" for i in range(20)} <= {arrival.name for arrival in arrivals}


def test_time_is_compressed_lulls_are_cut_and_lives_are_kept():
    trace = (task("a"), task("b", created=10_000_000.0, life=50.0), task("c", created=10_003_600.0, life=1e9))
    a, b, c = drawn(trace, seconds=1000.0)
    assert (a.at, b.at, c.at) == (0.0, 500.0, 1000.0)
    assert (a.life, b.life, c.life) == (600.0, 50.0, 1000.0)


def running(arrivals, moments):
    return [sum(a.at <= t < a.at + a.life for a in arrivals) for t in moments]


def test_what_runs_follows_the_tide():
    arrivals = drawn(tasks(4000, kind="inference", life=40.0), seconds=1000.0, tide=TIDE)
    low, half, peak, half_again, low_again = running(arrivals, (125, 250, 500, 750, 875))
    for share, count in ((0.25, low), (0.5, half), (0.5, half_again), (0.25, low_again)):
        assert count / peak == pytest.approx(share, abs=0.1)


def test_the_ebb_takes_even_those_that_would_stay_for_ever():
    arrivals = drawn(tasks(2000, kind="inference", life=1e6), seconds=1000.0, tide=TIDE)
    peak, half, low, none = running(arrivals, (600, 750, 875, 999))
    assert peak > half > low > none
    assert none <= 10


def test_the_tide_leaves_training_alone():
    assert drawn(tasks(50), tide=TIDE) == drawn(tasks(50))


def test_the_same_seed_draws_the_same():
    assert drawn(tasks(30), scale=3, seed=7) == drawn(tasks(30), scale=3, seed=7)
    assert drawn(tasks(30), scale=3, seed=7) != drawn(tasks(30), scale=3, seed=8)


def draw(trace, queues=None, seed=1):
    return QueueDraw(NODES, queues or queues_by_model(NODES), trace, random.Random(seed))


def test_training_of_one_queue_and_shape_forms_gangs_in_the_order_of_arrival():
    trace = tuple(
        task(f"p{i}", models=("G2",), created=10.0 * i, life=100.0 + i, cpu=4000 if i % 2 else 8000) for i in range(7)
    )
    gangs = make_workloads(drawn(trace), draw(trace), gang_size=2, start=0.0)
    shown = sorted((w.name, w.replicas, w.min_member, w.template.cpu_milli, w.duration) for _, w in gangs)
    assert shown == [
        ("p0", 2, 2, 8000, 102.0),
        ("p1", 2, 2, 4000, 103.0),
        ("p4", 2, 2, 8000, 106.0),
        ("p5", 1, 1, 4000, 105.0),
    ]


def test_default_queues_have_all_cards_of_their_model_as_quota():
    queues = {queue.name: queue for queue in queues_by_model(NODES)}
    assert sorted(queues) == ["inference-g2", "inference-t4", "training-g2", "training-t4"]
    assert queues["inference-t4"].card_quota == {"T4": 2000}
    assert (queues["inference-t4"].priority, queues["inference-t4"].reclaimable) == (80_000, False)
    assert (queues["training-t4"].priority, queues["training-t4"].reclaimable) == (20_000, True)


def test_a_task_goes_where_it_is_named_fits_and_may_use_the_cards():
    trace = (task("n", models=("T4",)), task("big", milli=8000), task("any", milli=0))
    chooser = draw(trace)
    assert (chooser.draw(trace[0]).queue, chooser.draw(trace[0]).cards) == ("training-t4", ("T4",))
    assert chooser.draw(trace[1]).queue == "training-g2"
    assert chooser.draw(trace[2]).cards == ()


def test_a_choice_of_cards_is_kept_where_the_queue_may_use_them_all():
    both = Queue(name="both", service_type="training", card_quota={"G2": 8000, "T4": 2000})
    one = Queue(name="one", service_type="inference", card_quota={"G2": 8000})
    trace = (task("a", models=("T4", "G2")), task("b", "inference", models=("T4", "G2")))
    chooser = draw(trace, (both, one))
    assert chooser.draw(trace[0]).cards == ("T4", "G2")
    assert chooser.draw(trace[1]).cards == ("G2",)


def test_queues_without_a_service_type_are_refused():
    with pytest.raises(BadInput) as caught:
        draw((), (Queue(name="q", card_quota={"G2": 1000}),))
    assert caught.value.code == "no_queue"
