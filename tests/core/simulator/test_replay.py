"""The replay in one process: skipped sessions, metrics, output files, bad input at the command line."""

import io
import json

import pytest

from scheduler_core.cli.main import main
from scheduler_core.model.errors import BadInput
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator.replay import ReplayOptions, replay

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,T4\n"
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time\n"


@pytest.fixture
def files(tmp_path):
    def make(pods, nodes=NODES):
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "pods.csv").write_text(HEADER + pods)
        return {"nodes": tmp_path / "nodes.csv", "pods": tmp_path / "pods.csv"}

    return make


def play(paths, **options):
    trace = io.BytesIO()
    report = replay(ReplayOptions(**paths, **options), parse_policy(FOUNDING_POLICY), trace=trace)
    return report, [json.loads(line) for line in trace.getvalue().splitlines()]


def test_inference_takes_the_cards_of_a_gang_which_waits_at_its_old_place(files):
    # The gang holds both cards; a service comes at 302 s, wants one and works for 300 s.
    paths = files(
        "a,1000,64,1,1000,T4,BE,0,5000,0\n"
        "b,1000,64,1,1000,T4,BE,0,5000,0\n"
        "serve,1000,64,1,1000,T4,LS,302,602,302\n"
        "last,1000,64,0,0,,BE,1000,1001,1000\n"
    )
    report, lines = play(paths, hours=2500 / 3600, gang_size=2)
    times = {event: [line["t"] for line in lines if line["event"] == event] for event in ("bind", "evict", "requeue")}
    # Time is stretched 2.5 times, so it comes at 755 s; the next session is at 760 s.
    assert times["evict"] == [760.0, 760.0]
    assert 790 <= times["requeue"][0] <= 795
    assert [line["reclaimer"] for line in lines if line["event"] == "evict"] == ["replay/serve"] * 2
    assert (report.reclaims, report.gangs_broken, report.evictions) == (1, 1, {"inference": 0, "training": 2})
    assert report.promise_s["inference"] == {"p50": 5.0, "p99": 5.0}
    assert 36 <= report.wait_s["inference"]["p99"] <= 37
    # Two cards from their first bind to 30 s after the eviction.
    began = times["bind"][0]
    assert report.card_hours["lost"] == pytest.approx(2 * (790 - began) / 3600, abs=0.01)
    assert report.quota_violations == report.gangs_partial_steps == report.refused_writes == 0
    assert report.allocation["T4"]["max"] == 1.0
    # It gets both cards back when the service is done.
    assert times["bind"][-1] > 1090


def test_quiet_sessions_are_counted(files):
    paths = files("a,1000,64,1,1000,T4,BE,0,50,0\nb,1000,64,1,1000,T4,LS,10,90,10\n")
    report, _ = play(paths, hours=2)
    assert report.sessions == 720


def test_the_command_writes_report_and_trace(files, tmp_path, capsys):
    paths = files("a,1000,64,1,1000,T4,BE,0,50,0\n")
    out, trace = tmp_path / "report.json", tmp_path / "trace.ndjson"
    options = ["replay", "--nodes", str(paths["nodes"]), "--pods", str(paths["pods"]), "--hours", "0.1"]
    assert main([*options, "--output", "json", "--out", str(out), "--trace", str(trace)]) == 0
    report = json.loads(out.read_text())
    assert set(report) >= {
        "sessions", "binds", "reclaims", "evictions", "gangs_broken", "gangs_partial_steps", "quota_violations",
        "card_hours", "saturated_hours", "allocation", "promise_s", "wait_s", "seed", "scale",
    }  # fmt: skip
    assert [json.loads(line)["event"] for line in trace.read_text().splitlines()] == ["arrive", "bind", "finish"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "sessions" in captured.err
    assert main(options) == 0
    assert "hours at 95 %" in capsys.readouterr().out


def test_a_broken_line_ends_with_status_2_and_its_place(files, capsys):
    paths = files("a,1000,64,1,1000,T4,BE,0,50,0\nb,-5,64,1,1000,T4,BE,0,50,0\n")
    options = ["replay", "--nodes", str(paths["nodes"]), "--pods", str(paths["pods"]), "--output", "json"]
    assert main(options) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["code"], error["line"], error["path"], error["value"]) == ("bad_csv", 3, "cpu_milli", "-5")
    assert error["file"].endswith("pods.csv")


@pytest.mark.parametrize("where", ["--out", "--trace"])
def test_files_that_cannot_be_written_are_bad_input(files, tmp_path, where, capsys):
    paths = files("a,1000,64,1,1000,T4,BE,0,50,0\n")
    options = ["replay", "--nodes", str(paths["nodes"]), "--pods", str(paths["pods"]), "--hours", "0.1"]
    assert main([*options, where, str(tmp_path / "none" / "file")]) == 2
    assert "unwritable_file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [{"hours": 0.0}, {"scale": -1.0}, {"gang_size": 0}, {"session_seconds": float("nan")}]
)
def test_options_that_mean_nothing_are_refused(files, wrong):
    with pytest.raises(BadInput) as caught:
        play(files("a,1000,64,1,1000,T4,BE,0,50,0\n"), **wrong)
    assert caught.value.code == "bad_argument"
