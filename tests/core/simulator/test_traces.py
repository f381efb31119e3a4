"""Readers of the traces: what they read, and the place in every error."""

import pytest

from scheduler_core.model.cards import NodeCards
from scheduler_core.model.errors import BadInput
from scheduler_core.simulator.traces.openb_nodes import read_nodes
from scheduler_core.simulator.traces.openb_pods import read_pods
from scheduler_core.simulator.traces.tide_curve import read_tide

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
TIDE = "seconds,qps\n"


def put(tmp_path, text):
    path = tmp_path / "file.csv"
    path.write_text(text)
    return path


def test_nodes_carry_their_cards_and_the_label_that_discovery_needs(tmp_path):
    first, second = read_nodes(put(tmp_path, NODES + "b,8000,1024,2,T4\na,4000,512,0,\n"))
    assert (first.name, first.cards, first.labels) == ("a", (), {})
    assert second.cards == (NodeCards("T4", "nvidia.com/gpu", 2),)
    assert second.labels == {"nvidia.com/gpu.product": "T4"}


def test_a_workload_of_five_columns_is_batch_work_that_stays(tmp_path):
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    (task,) = read_pods(put(tmp_path, header + "p0,1000,64,1,500\n"))
    assert (task.card_milli, task.models, task.service_type, task.created) == (500, (), "training", 0.0)
    assert task.life > 365 * 24 * 3600


def test_tasks_are_read_with_type_share_choice_and_life(tmp_path):
    text = PODS + (
        "late,1000,64,1,1000,V100M16|V100M32|V100M32,BE,Running,50,90,60\n"
        "share,1000,64,1,460,,LS,Running,10,20,\n"
        "none,1000,64,0,0,,Guaranteed,Running,10,10,10\n"
        "eight,1000,64,8,1000,G2,Burstable,Failed,0,5,\n"
    )
    tasks = {task.name: task for task in read_pods(put(tmp_path, text))}
    assert list(tasks) == ["eight", "none", "share", "late"]
    assert tasks["late"].models == ("V100M16", "V100M32")
    assert (tasks["late"].service_type, tasks["late"].life) == ("training", 30.0)
    assert (tasks["share"].service_type, tasks["share"].card_milli, tasks["share"].life) == ("inference", 460, 10.0)
    assert (tasks["none"].service_type, tasks["none"].card_milli, tasks["none"].life) == ("inference", 0, 1.0)
    assert (tasks["eight"].service_type, tasks["eight"].card_milli) == ("training", 8000)


@pytest.mark.parametrize(
    ("reader", "text", "line", "column"),
    [
        (read_nodes, NODES + "a,4000,512,0,\nb,x,1,1,T4\n", 3, "cpu_milli"),
        (read_nodes, NODES + "a,4000,512,-1,T4\n", 2, "gpu"),
        (read_nodes, NODES + "a,4000,512,1,\n", 2, "model"),
        (read_nodes, NODES + "a,1,1,0,\na,1,1,0,\n", 3, "sn"),
        (read_nodes, NODES + "a,1,1\n", 2, None),
        (read_nodes, "sn,cpu_milli\n", 1, "memory_mib"),
        (read_nodes, NODES, None, None),
        (read_pods, PODS + "p,1,1,1,1000,,XX,Running,0,1,0\n", 2, "qos"),
        (read_pods, PODS + "p,1,1,1,0,,LS,Running,0,1,0\n", 2, "gpu_milli"),
        (read_pods, PODS + "p,1,1,2,500,,LS,Running,0,1,0\n", 2, "gpu_milli"),
        (read_pods, PODS + "p,1,1,1,1000,,LS,Running,5,1,0\n", 2, "deletion_time"),
        (read_pods, PODS + "p,1,1,1,1000,,LS,Running,soon,1,0\n", 2, "creation_time"),
        (read_pods, PODS + "p,1,1,0,0,,LS,Running,0,1,0\np,1,1,0,0,,LS,Running,0,1,0\n", 3, "name"),
        (read_tide, TIDE + "0,1\n0,2\n", 3, "seconds"),
        (read_tide, TIDE + "0,nan\n", 2, "qps"),
        (read_tide, TIDE + "0,0\n9,0\n", None, None),
    ],
)
def test_a_broken_line_is_named(tmp_path, reader, text, line, column):
    path = put(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        reader(path)
    assert (caught.value.file, caught.value.line, caught.value.path) == (str(path), line, column)
    assert caught.value.hint


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput) as caught:
        read_nodes(tmp_path / "none.csv")
    assert caught.value.code == "unreadable_file"


def test_the_tide_gives_levels_arrivals_and_the_next_ebb(tmp_path):
    tide = read_tide(put(tmp_path, TIDE + "0,0\n100,8\n200,0\n"))
    assert tide.level(0.5) == 1.0
    assert tide.level(0.25) == pytest.approx(0.5)
    # Half of the day's water has come at the top of a tide that is the same on both sides.
    assert tide.arrival(0.5) == pytest.approx(0.5, abs=1e-3)
    assert tide.arrival(0.125) == pytest.approx(0.25, abs=1e-3)
    assert tide.ebb(0.25, 0.5) == pytest.approx(0.75, abs=1e-3)
    assert tide.ebb(0.9, 0.0) is None
