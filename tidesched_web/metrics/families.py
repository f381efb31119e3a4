"""The metrics, their labels and what they say (docs/metrics.md), and how figures become what Prometheus reads."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily


class Told(NamedTuple):
    labels: str
    text: str
    bounds: tuple[float, ...] = ()


_REQUEST_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SESSION_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_WAIT_SECONDS = (1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0)
_MOVED, _GANG = "cluster from_queue to_queue card", "cluster service_type card"
ALL: Final[Mapping[str, Told]] = {
    "tidesched_cards": Told("cluster card kind", "Cards by what they are used for, as of the newest session."),
    "tidesched_queue_cards": Told("cluster queue card kind", "Cards of a queue, as of the newest session."),
    "tidesched_nodes": Told("cluster card kind", "Nodes with the card type: free, partial and full."),
    "tidesched_gangs": Told("cluster queue state", "Gangs that are in the cluster."),
    "tidesched_waiting_gangs": Told("cluster queue reason", "Gangs that still need something."),
    "tidesched_last_session_timestamp_seconds": Told("cluster", "When the newest session that ended did."),
    "tidesched_drift_objects": Told("cluster kind", "Objects with an open drift."),
    "tidesched_watch_lag_seconds": Told("cluster kind", "For how many seconds a watch has heard nothing."),
    "tidesched_alerts": Told("code severity", "Open alerts of the console."),
    "tidesched_jobs_waiting": Told("kind", "Jobs that wait for their turn."),
    "tidesched_streams": Told("", "Open event streams of all web processes."),
    "tidesched_sessions_total": Told("cluster result", "Sessions that have ended."),
    "tidesched_session_seconds": Told("cluster result", "From a session's start to its end.", _SESSION_SECONDS),
    "tidesched_reclaims_total": Told(_MOVED, "Reclaims, once for each queue and card type that lost."),
    "tidesched_reclaimed_cards_total": Told(_MOVED, "Cards that reclaims took."),
    "tidesched_work_lost_card_seconds_total": Told(_MOVED, "Work that reclaims lost."),
    "tidesched_time_to_promise_seconds": Told(_GANG, "From a gang's wait to its promise.", _WAIT_SECONDS),
    "tidesched_time_to_running_seconds": Told(_GANG, "From a gang's wait until it ran.", _WAIT_SECONDS),
    "tidesched_run_seconds": Told(_GANG, "From when a gang ran until it finished.", _WAIT_SECONDS),
    "tidesched_push_total": Told("cluster result", "Queues and priority classes brought to the cluster."),
    "tidesched_http_requests_total": Told("method route status", "Answered requests."),
    "tidesched_http_request_seconds": Told("method route", "From a request to its answer.", _REQUEST_SECONDS),
}
# Metric, the values of its labels; of a histogram the place of one of its buckets too, or SUM.
Key = tuple[str, ...]
SUM: Final = "sum"


def observe(figures: dict[Key, float], key: Key, amount: float) -> None:
    added = {key: amount}
    if bounds := ALL[key[0]].bounds:
        added = {(*key, str(bisect_left(bounds, amount))): 1, (*key, SUM): amount}
    for part, more in added.items():
        figures[part] = figures.get(part, 0.0) + more


def families(figures: Iterable[tuple[Key, float]]) -> Iterable[Any]:
    found = {name: _family(name, told) for name, told in ALL.items()}
    histograms: dict[Key, dict[str, float]] = {}
    for key, figure in figures:
        if ALL[key[0]].bounds:
            histograms.setdefault(key[:-1], {})[key[-1]] = figure
        else:
            found[key[0]].add_metric(key[1:], figure)
    for (name, *labels), parts in histograms.items():
        bounds = (*map(str, ALL[name].bounds), "+Inf")
        numbers = accumulate(parts.get(str(place), 0) for place in range(len(bounds)))
        found[name].add_metric(labels, list(zip(bounds, numbers, strict=True)), parts[SUM])
    return found.values()


def _family(name: str, told: Told) -> Any:
    plain = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return (HistogramMetricFamily if told.bounds else plain)(name, told.text, labels=told.labels.split())
