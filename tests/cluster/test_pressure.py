"""Many requests at once, without a server: throttling, and a server that serves no request."""

from __future__ import annotations

import threading

import urllib3

from tidesched_web.clusters.kubernetes.client import in_plain_words
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind, from_status
from tidesched_web.clusters.kubernetes.pressure import run_all

DONE = Outcome(OutcomeKind.DONE)
THROTTLED = Outcome(OutcomeKind.UNREACHABLE, "TooManyRequests", "slow down", retry_after=0.01)
AWAY = Outcome(OutcomeKind.UNREACHABLE, "Unreachable", "no route", away=True)


class Calls:
    """Calls with given answers, one after the other; the last answer for ever."""

    def __init__(self, *answers: Outcome) -> None:
        self.answers, self.made, self.most, self._now = list(answers), 0, 0, 0
        self._lock = threading.Lock()

    def __call__(self) -> Outcome:
        with self._lock:
            self.made += 1
            self._now += 1
            self.most = max(self.most, self._now)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        with self._lock:
            self._now -= 1
        return answer


def test_the_outcomes_come_in_the_order_of_the_calls() -> None:
    answers = [Outcome(OutcomeKind.DONE, str(index)) for index in range(50)]
    found = run_all([lambda answer=answer: answer for answer in answers], parallel=4)
    assert found == answers


def test_no_more_than_so_many_are_under_way() -> None:
    calls = Calls(DONE)
    run_all([calls] * 40, parallel=3)
    assert calls.made == 40
    assert calls.most <= 3


def test_what_was_throttled_is_made_again_after_the_rest() -> None:
    calls = Calls(THROTTLED, THROTTLED, DONE)
    assert [outcome.kind for outcome in run_all([calls] * 5, parallel=2)] == [OutcomeKind.DONE] * 5
    assert calls.made == 7


def test_a_server_that_throttles_for_ever_is_left_to_the_next_session() -> None:
    calls = Calls(THROTTLED)
    outcomes = run_all([calls] * 20, parallel=2, patience=0.2)
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.UNREACHABLE}
    assert all(outcome.away and not outcome.maybe_done for outcome in outcomes)


def test_nothing_more_is_sent_to_a_server_that_serves_nobody() -> None:
    calls = Calls(DONE, DONE, AWAY)
    outcomes = run_all([calls] * 30, parallel=1)
    assert calls.made == 3
    assert [outcome.kind for outcome in outcomes[:2]] == [OutcomeKind.DONE] * 2
    assert outcomes[3].message == "Not sent: no route"
    assert not outcomes[3].maybe_done


def test_answers_are_told_apart() -> None:
    budget = {"reason": "TooManyRequests", "details": {"causes": [{"reason": "DisruptionBudget"}]}}
    throttled = from_status(429, {"reason": "TooManyRequests"}, retry_after=7.0)
    assert (throttled.kind, throttled.retry_after, throttled.away) == (OutcomeKind.UNREACHABLE, 7.0, False)
    assert from_status(429, {}).retry_after > 0
    assert from_status(429, budget, retry_after=10.0).kind is OutcomeKind.REFUSED
    expired = from_status(401, {"reason": "Unauthorized"})
    assert (expired.kind, expired.away, expired.maybe_done) == (OutcomeKind.UNREACHABLE, True, False)
    assert from_status(403, {"reason": "Forbidden"}).kind is OutcomeKind.REFUSED
    broken = from_status(500, {"message": "etcdserver: request timed out"})
    assert (broken.kind, broken.maybe_done, broken.away) == (OutcomeKind.UNREACHABLE, True, False)
    two_budgets = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert from_status(500, {"message": two_budgets}).kind is OutcomeKind.REFUSED
    assert from_status(503, {}).away
    assert from_status(410, {}).kind is OutcomeKind.GONE


def test_what_went_wrong_is_said_without_names_of_classes_and_with_plain_seconds():
    pool = urllib3.HTTPConnectionPool("10.0.0.15", port=6443)
    error = urllib3.exceptions.ReadTimeoutError(pool, "/api", "Read timed out. (read timeout=4.999655186999007)")
    assert in_plain_words(error) == "Read timed out. (read timeout=5.0)"
    refused = urllib3.exceptions.NewConnectionError(
        urllib3.connection.HTTPConnection("10.0.0.15", 6443), "10.0.0.15: no"
    )
    assert in_plain_words(refused) == "10.0.0.15: no"
