"""sla: deadlines from the argument and from annotations, order, votes, and room that is kept."""

from __future__ import annotations

import pytest

from scheduler_core import BadInput, Memory
from scheduler_core.algorithms.durations import parse_duration
from scheduler_core.framework.combine import Ballot
from scheduler_core.plugins.sla import Sla
from scheduler_core.serde.policy import parse_policy
from tests.core.plugins.opening import cores, opened, plain_queue
from tests.core.small_cluster import gang, snapshot


def waits(name, created=0.0, note=None, key="volcano.sh/sla-waiting-time", **more):
    group = {"created": created, "annotations": {} if note is None else {key: note}, **more}
    return gang(name, 1, 0, "q", group=group)


def plugin_of(*gangs, **more):
    return opened(Sla, snapshot([cores("n1", 4)], [plain_queue("q")], *gangs), **more)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("1m1s", 61.0),
        ("100us", 0.0001),
        (".5s", 0.5),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "1 h", "-5s", "0s", "1x", "h", "s5", "1e3s", "999999999h"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match=r"duration|hundred years"):
        parse_duration(text)


class TestOrder:
    def test_the_earliest_deadline_first_and_those_without_last(self):
        plugin = plugin_of(waits("a", 100), waits("b", 50, "10m"), waits("c", 0, "3m", key="sla-waiting-time"))
        assert [plugin.job_order(g)[0] for g in range(3)] == [float("inf"), 650.0, 180.0]

    def test_the_argument_is_for_those_without_annotation(self):
        plugin = plugin_of(waits("a", 100), waits("b", 50, "10m"), **{"sla-waiting-time": "1m"})
        assert [plugin.job_order(g)[0] for g in range(2)] == [160.0, 650.0]

    @pytest.mark.parametrize(("compat", "deadline"), [(False, 20.0), (True, 110.0)])
    def test_the_time_runs_from_the_first_submission(self, compat, deadline):
        memory = Memory(submitted={"ns/Job/a": 10.0})
        plugin = plugin_of(waits("a", 100, "10s"), memory=memory, compat=compat)
        assert plugin.deadline(0) == deadline


class TestVotes:
    @pytest.mark.parametrize(("now", "answer"), [(99, Ballot.ABSTAIN), (100, Ballot.PERMIT), (500, Ballot.PERMIT)])
    def test_permit_from_the_deadline_on(self, now, answer):
        plugin = plugin_of(waits("a", 40, "1m"), now=now)
        assert plugin.job_enqueueable(0, plugin.session.minimum(0)) is answer
        assert plugin.job_pipelined(0) is answer
        assert plugin.holds_partly(0) is (answer is Ballot.PERMIT)

    def test_without_a_deadline_never(self):
        assert plugin_of(waits("a"), now=1e9).job_pipelined(0) is Ballot.ABSTAIN


class TestErrors:
    def test_an_annotation_that_cannot_be_read_is_told(self):
        plugin = plugin_of(waits("a", 0, "soon"))
        assert "'soon' is not a duration" in plugin.session.problem(0)
        assert plugin_of(waits("a", 0, "soon"), compat=True).session.problem(0) is None

    def test_an_argument_that_cannot_be_read_stands_at_its_line(self):
        with pytest.raises(BadInput) as caught:
            parse_policy(
                "actions: 'enqueue'\ntiers:\n- plugins:\n  - name: sla\n    arguments: {sla-waiting-time: soon}\n"
            )
        assert (caught.value.code, caught.value.line) == ("bad_argument", 5)
        assert "write for example '1h30m'" in caught.value.message
