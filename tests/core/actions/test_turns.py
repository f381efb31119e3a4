"""What a turn of action allocate asks for, and what it changes outside of the compiled loop."""

import pytest

from scheduler_core import PluginOption, Policy, run_session
from scheduler_core.actions.support.turns import CompiledTurns
from scheduler_core.framework.node_scores import NodeScores
from scheduler_core.model.memory import Memory, Reservation
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.plugins import PLUGINS
from scheduler_core.plugins.fragmentation import Fragmentation
from tests.core.small_cluster import gang, node, snapshot, training

NOW = 1000.0


def rules(*names):
    return Policy(actions=("allocate",), tiers=(tuple(PluginOption(name=name) for name in names),))


@pytest.mark.parametrize("promised", [0, 78, 82, 200])
def test_the_log_holds_all_changes_of_a_turn_that_settles_promises(promised, monkeypatch):
    """A compiled function writes past the end of an array without a word."""
    ends, end = [], CompiledTurns._end
    monkeypatch.setattr(CompiledTurns, "_end", lambda turns: (ends.append(turns._log), end(turns)))
    count = promised + 10
    waits = gang("g", count, 0, "training", cpu=100, memory=10, phase=GangPhase.INQUEUE)
    place = {"gang": "ns/g", "node": "n1", "card": "", "card_indices": (), "victims": (), "made": 0.0, "expires": 1e9}
    kept = [Reservation(pod=f"ns/g-{at}", **place) for at in range(promised)]
    given = snapshot([node("n1", 8, pods=500)], [training()], waits)
    result, _ = run_session(given, rules("gang", "predicates"), now=NOW, memory=Memory(reservations=tuple(kept)))
    assert len(result.binds) == count
    assert len(ends) == (promised > 0)
    assert all(log.length[0] <= len(log.nodes) for log in ends)


class Fresh(Fragmentation):
    """Counts its scores anew each time, beside those that it keeps."""

    name = "fresh"
    pairs: list[tuple[list[float], list[float]]] = []

    def node_order(self, cls, where):
        kept = super().node_order(cls, where)
        anew = NodeScores(self.session, Fragmentation.compiled_form(self, "node_order")).of(cls, where)
        self.pairs.append((kept.tolist(), anew.tolist()))
        return kept


def test_an_own_score_sees_what_the_turn_has_changed(monkeypatch):
    monkeypatch.setitem(PLUGINS, "fresh", Fresh)
    monkeypatch.setattr("scheduler_core.scheduler._tables", None)
    gangs = [
        gang(f"g{at}", 3, cards, "training", cpu=1000, memory=1000 + at, phase=GangPhase.INQUEUE)
        for at, cards in enumerate((1, 0.4, 0.5, 2))
    ]
    given = snapshot([node(f"n{at}", 4) for at in range(3)], [training()], *gangs)
    result, _ = run_session(given, rules("gang", "predicates", "fresh"), now=NOW)
    assert result.binds
    assert len(Fresh.pairs) > len(gangs)
    assert all(kept == anew for kept, anew in Fresh.pairs)
