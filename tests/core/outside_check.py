"""Computes the invariants of a replay again from its trace alone.

Shares no code with the engine or the simulator: it reads the nodes' CSV and the NDJSON of ``--trace``, nothing else.
``python -m tests.core.outside_check NODES.csv TRACE.ndjson [--grace 30] [--session 10] [--hours 24]`` checks a big one.
"""

import argparse
import csv
import itertools
import json
import sys
from collections import defaultdict
from pathlib import Path

WHOLE = 1000
WINDOW = 300.0


def milli(cards):
    """Milli-cards of a ``cards`` object, by type."""
    return {card: round(count * WHOLE) for card, count in cards.items()}


class OutsideCheck:
    """Plays the lines of a trace and writes down every rule that they break."""

    def __init__(self, capacity, quotas, *, grace, session, end):
        self.capacity, self.quotas = capacity, quotas
        self.grace, self.session, self.end = grace, session, end
        self.findings = []
        self.counts = defaultdict(int)
        self.least = {}
        self.members = defaultdict(set)
        self.on_card = defaultdict(dict)
        self.placed = {}
        self.leaving = []
        self.charged = defaultdict(int)
        self.standing = defaultdict(set)
        self.touched = set()
        self.bound_at = defaultdict(list)
        self.claims = []
        self.waiting = set()
        self.totals = defaultdict(int)
        for (_, card), count in capacity.items():
            self.totals[card] += count * WHOLE
        self.in_use, self.full = defaultdict(int), defaultdict(float)
        self.clock = self.three = self.stretch = self.longest = 0.0
        self.window = dict.fromkeys(self.totals, 0.0)
        self.windows_three = []

    def wrong(self, line, text):
        self.findings.append(f"t={line['t']} {line['event']} {line['pod']}: {text}")

    def play(self, lines):
        now = None
        for line in lines:
            if now is not None and line["t"] < now:
                self.wrong(line, f"time runs backwards from {now}")
            if now is not None and line["t"] > now:
                self.moment_over(now)
            now = line["t"]
            self.give_back(now)
            self.time_passes(now)
            self.counts[line["event"]] += 1
            getattr(self, line["event"])(line)
        if now is not None:
            self.moment_over(now)
        self.give_back(self.end)
        self.time_passes(self.end)
        self.check_claims()
        return self.findings

    def arrive(self, line):
        self.members[line["gang"]].add(line["pod"])
        self.least[line["gang"]] = line["min_member"]
        self.waiting.add(line["pod"])

    def requeue(self, line):
        if line["pod"] in self.placed:
            self.wrong(line, "back in the queue while it holds cards")
        self.waiting.add(line["pod"])

    def bind(self, line):
        pod, node, cards, indices = line["pod"], line["node"], milli(line["cards"]), line["card_indices"]
        if pod in self.placed:
            self.wrong(line, "bound twice")
        if pod not in self.waiting:
            self.wrong(line, "bound although it does not wait")
        self.waiting.discard(pod)
        for card, amount in cards.items():
            self.take(line, node, card, amount, indices)
            self.in_use[card] += amount
            self.charge(line, card, amount)
        self.placed[pod] = (node, cards, indices)
        self.standing[line["gang"]].add(pod)
        self.touched.add(line["gang"])
        self.bound_at[pod].append(line["t"])

    def take(self, line, node, card, amount, indices):
        count = self.capacity.get((node, card), 0)
        whole = amount % WHOLE == 0
        if len(set(indices)) != (amount // WHOLE if whole else 1):
            self.wrong(line, f"{amount} milli-cards on cards {indices}")
        for index in indices:
            if not 0 <= index < count:
                self.wrong(line, f"card {index} of {count} on {node}")
            holders = self.on_card[node, card, index]
            part = WHOLE if whole else amount
            if sum(holders.values()) + part > WHOLE:
                self.wrong(line, f"card {index} of {card} on {node} is used twice: {holders}")
            holders[line["pod"]] = part

    def charge(self, line, card, amount):
        key = (line["queue"], card)
        self.charged[key] += amount
        limit = self.quotas.get(line["queue"], {}).get(card, 0) * WHOLE
        if self.charged[key] > limit:
            self.wrong(line, f"queue {key[0]} uses {self.charged[key]} of {limit} milli-cards of {card}")

    def evict(self, line):
        if line["service_type"] != "training":
            self.wrong(line, f"{line['service_type']} was evicted")
        if not line["reclaimer"]:
            self.wrong(line, "evicted for nobody")
        if not line["node"]:
            self.waiting.discard(line["pod"])
            return
        if line["pod"] not in self.placed:
            self.wrong(line, "evicted without being bound")
            return
        if line["until"] > line["t"] + self.grace:
            self.wrong(line, f"leaves only at {line['until']}")
        self.step_down(line)
        self.leaving.append((line["until"], line["pod"]))
        self.claims.append((line["t"], line["reclaimer"], line["pod"]))

    def finish(self, line):
        if line["pod"] not in self.placed:
            self.wrong(line, "finished without being bound")
            return
        self.step_down(line)
        self.free(line["pod"])

    def step_down(self, line):
        pod = line["pod"]
        for card, amount in self.placed[pod][1].items():
            self.charged[line["queue"], card] -= amount
        self.standing[line["gang"]].discard(pod)
        self.touched.add(line["gang"])

    def give_back(self, now):
        due = [item for item in self.leaving if item[0] <= now]
        if due:
            self.leaving = [item for item in self.leaving if item[0] > now]
            for until, pod in sorted(due):
                self.time_passes(until)
                self.free(pod)

    def free(self, pod):
        node, cards, indices = self.placed.pop(pod)
        for card, amount in cards.items():
            self.in_use[card] -= amount
            for index in indices:
                del self.on_card[node, card, index][pod]

    def time_passes(self, until):
        """How long each model, and three of them at once, were at least 95 % in use."""
        passed, self.clock = until - self.clock, until
        if passed <= 0:
            return
        full = [card for card, milli in self.totals.items() if self.in_use[card] >= 0.95 * milli]
        for card in full:
            self.full[card] += passed
        self.window_passes(until - passed, until)
        self.stretch = self.stretch + passed if len(full) >= 3 else 0.0
        self.three += passed if len(full) >= 3 else 0.0
        self.longest = max(self.longest, self.stretch)

    def window_passes(self, since, until):
        """Whether three models were at least 95 % in use in the mean of each five minutes."""
        while since < until:
            end = min(until, (since // WINDOW + 1) * WINDOW)
            for card in self.window:
                self.window[card] += self.in_use[card] * (end - since)
            if end % WINDOW == 0:
                enough = [card for card, sum_ in self.window.items() if sum_ >= 0.95 * self.totals[card] * WINDOW]
                self.windows_three.append(len(enough) >= 3)
                self.window = dict.fromkeys(self.window, 0.0)
            since = end

    def moment_over(self, now):
        for gang in self.touched:
            standing = len(self.standing[gang])
            if 0 < standing < self.least[gang]:
                self.findings.append(f"t={now} gang {gang} stands with {standing} of {self.least[gang]}")
        self.touched.clear()

    def check_claims(self):
        """Whoever took cards must run: all of its members within the grace and a few sessions."""
        patience = self.grace + 4 * self.session
        for at, reclaimer, victim in self.claims:
            if at + patience > self.end:
                continue
            until = at + patience
            times = [time for pod in self.members[reclaimer] for time in self.bound_at[pod]]
            ran = sum(any(time <= until for time in self.bound_at[pod]) for pod in self.members[reclaimer])
            if not any(at <= time <= until for time in times):
                ran = 0
            if ran < self.least.get(reclaimer, 1):
                self.findings.append(f"t={at} {victim} fell for {reclaimer}, of which {ran} pods ran by t+{patience}")


def longest_run(flags):
    """The most true values on end."""
    return max((len(list(group)) for flag, group in itertools.groupby(flags) if flag), default=0)


def read_capacity(nodes_csv):
    """(node, model) -> cards, and model -> cards of all nodes."""
    capacity, totals = {}, defaultdict(int)
    with Path(nodes_csv).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            capacity[row["sn"], row["model"]] = int(row["gpu"])
            totals[row["model"]] += int(row["gpu"])
    return capacity, totals


def default_quotas(totals):
    """One inference and one training queue for each model, each with all its cards."""
    return {f"{kind}-{model.lower()}": {model: n} for kind in ("inference", "training") for model, n in totals.items()}


def check_trace(nodes_csv, trace, *, quotas=None, grace=30.0, session=10.0, hours=24.0):
    """The findings, the number of lines by event, and for how many hours the models were saturated."""
    capacity, totals = read_capacity(nodes_csv)
    check = OutsideCheck(capacity, quotas or default_quotas(totals), grace=grace, session=session, end=hours * 3600)
    with Path(trace).open(encoding="utf-8") as file:
        findings = check.play(json.loads(line) for line in file)
    hours_full = {card: round(seconds / 3600, 3) for card, seconds in sorted(check.full.items())}
    saturated = {
        "by_card": hours_full,
        "three": round(check.three / 3600, 3),
        "longest": round(check.longest / 3600, 3),
        "three_5min": round(sum(check.windows_three) * WINDOW / 3600, 3),
        "longest_5min": round(longest_run(check.windows_three) * WINDOW / 3600, 3),
    }
    return findings, dict(check.counts), saturated


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes")
    parser.add_argument("trace")
    parser.add_argument("--grace", type=float, default=30.0)
    parser.add_argument("--session", type=float, default=10.0)
    parser.add_argument("--hours", type=float, default=24.0)
    options = parser.parse_args()
    findings, counts, saturated = check_trace(
        options.nodes, options.trace, grace=options.grace, session=options.session, hours=options.hours
    )
    print(json.dumps(counts, sort_keys=True))
    print(json.dumps({"hours at 95 % or more": saturated}, sort_keys=True))
    print("\n".join(findings[:50]))
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
