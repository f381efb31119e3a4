"""extender: the answers of a service, asked as a plain function here (``answers``)."""

from __future__ import annotations


class Extender:
    """What the service says, verb by verb."""

    def __init__(self, arguments):
        self.verbs = {path for key, path in arguments.items() if key.endswith("Verb")}

    def _asked(self, verb):
        return answers(verb) if verb in self.verbs else None

    def task_filter(self, world, task, name):
        said = self._asked("predicate")
        return said is None or not said(task["key"], name)

    def task_score(self, world, task, name):
        said = self._asked("prioritize")
        return 0.0 if said is None else float(said(task["key"], name))

    def reclaimable(self, world, task, candidates):
        return self._victims("reclaimable", task, candidates)

    def preemptable(self, world, task, candidates):
        return self._victims("preemptable", task, candidates)

    def _victims(self, verb, task, candidates):
        said = self._asked(verb)
        if said is None:
            return None
        return {other["key"] for other in candidates if said(task["key"], other["key"])}

    def overused(self, world, queue):
        said = self._asked("queueOverused")
        return said is not None and said(queue)

    def enqueueable(self, world, gang):
        said = self._asked("jobEnqueueable")
        return 0 if said is None else said(gang)

    def ready(self, world, gang):
        said = self._asked("jobReady")
        return said is None or said(gang)


def _sum(*names):
    return sum(ord(letter) for name in names for letter in name)


def answers(verb):
    """What the service of the tests says to one question; ``None`` = it knows no such verb."""
    return {
        "predicate": lambda task, node: _sum(task, node) % 11 == 0,
        "prioritize": lambda task, node: _sum(task, node) % 7,
        "reclaimable": lambda task, victim: _sum(victim) % 13 != 0,
        "preemptable": lambda task, victim: _sum(victim) % 13 != 0,
        "queueOverused": lambda queue: _sum(queue) % 17 == 0,
        "jobEnqueueable": lambda gang: -1 if _sum(gang) % 19 == 0 else _sum(gang) % 2,
        "jobReady": lambda gang: _sum(gang) % 23 != 0,
    }.get(verb)
