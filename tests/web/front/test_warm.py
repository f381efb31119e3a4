"""The looks of the collector of garbage in a web process: many small ones, so that none of them is long."""

from itertools import pairwise

from tidesched_web.front import warm


class Collector:
    """Notes after how many answers it looked and left out what is there."""

    def __init__(self, warmth):
        self.warmth, self.looks, self.left_out = warmth, [], []

    def collect(self):
        self.looks.append(self.warmth.answers)

    def freeze(self):
        self.left_out.append(self.warmth.answers)


def test_a_look_comes_before_the_answers_have_doubled(monkeypatch):
    """From 200 to 2,000 answers in one step, one look was seen to keep /healthz waiting for 239 ms."""
    warmth = warm.Warmth()
    collector = Collector(warmth)
    monkeypatch.setattr(warm, "gc", collector)
    for _answer in range(3 * warm.LAST_LOOK):
        warmth.answered()
    looks = collector.looks
    assert looks == collector.left_out
    assert looks[0] <= 50
    assert looks[-1] > 20_000
    assert [after for before, after in pairwise(looks) if after > 2 * before] == []
    assert len(looks) < 15


def test_a_look_waits_while_a_large_body_is_read(monkeypatch):
    """With the values of 20,000 queues in memory, a look was measured to keep the loop of the probes for 0.4 s."""
    warmth = warm.Warmth()
    collector = Collector(warmth)
    monkeypatch.setattr(warm, "gc", collector)
    for _answer in range(warm.FIRST_LOOK + 5):
        warmth.answered(busy=True)
    assert collector.looks == []
    warmth.answered()
    warmth.answered()
    assert collector.looks == [warm.FIRST_LOOK + 6]
