"""What a run of the proof has found is kept as it comes, and the next run goes on there."""

from collections import Counter

from tests.api.results import Found, Results, kind_of, summed_up

HOW = "seed 1, 50 of each"


def test_a_run_that_was_stopped_goes_on_and_a_second_look_replaces_the_first(tmp_path):
    first = Results(str(tmp_path), "conformance", how=HOW)
    first.add(Found("coverage", "GET /a", Counter({200: 3, 404: 1})))
    first.add(Found("coverage", "GET /b", Counter({500: 2}), ["not_a_server_error 500: Server error"]))
    first.add(Found("stateful", "GET /a", Counter({200: 1}), ended=False))
    with (tmp_path / "conformance.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"how": "seed 1, 50 of')  # here it was stopped
    other = Results(str(tmp_path), "conformance", how="seed 2, 50 of each")
    assert (other.done("coverage"), other.kept()) == (set(), [])

    second = Results(str(tmp_path), "conformance", how=HOW)
    assert (second.done("coverage"), second.done("stateful")) == ({"GET /a", "GET /b"}, set())
    assert [kind_of(text) for text in second.failed("coverage")["GET /b"]] == ["not_a_server_error"]
    second.run = "later"
    second.add(Found("coverage", "GET /b", Counter({200: 5})))
    second.add(Found("stateful", "GET /b", Counter({200: 1}), ended=False))
    second.add(Found("stateful", ""))
    assert (second.failed("coverage"), second.done("stateful")) == ({}, {""})
    said = summed_up(tmp_path)
    assert "coverage      2 operations       9 requests: 8 2xx, 1 4xx" in said
    assert "stateful      1 operations       1 requests" in said
    assert "with a 2xx: 2 operations; without: none" in said
