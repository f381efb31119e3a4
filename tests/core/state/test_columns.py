"""Columns that compiled code shares with the rest: they read and write like plain lists."""

import numpy as np
import pytest

from scheduler_core.model.cards import WORD_BITS
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.state.card_sets import CardSets, words_for
from scheduler_core.state.phases import (
    PHASE_COMPLETED,
    PHASE_INQUEUE,
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASES,
    Phases,
)


@pytest.mark.parametrize("cards", [(), (0,), (62,), (63,), (0, 1, 62, 63, 64, 125, 126)])
def test_card_sets_keep_what_they_are_given_also_beyond_one_word(cards):
    column = CardSets(4, words_for(127))
    column[2] = cards
    assert column[2] == cards
    assert column[1] == ()


def test_a_card_set_is_sorted_and_stored_as_bits():
    column = CardSets(2)
    column[0] = (5, 0, 3)
    assert column[0] == (0, 3, 5)
    assert column.words.tolist() == [[0b101001], [0]]


def test_a_copy_and_new_slots_leave_the_others_alone():
    column = CardSets(1)
    column[0] = (1,)
    other = column.copy()
    other[0] = ()
    column.grow(2)
    assert [column[0], column[2], other[0]] == [(1,), (), ()]


@pytest.mark.parametrize(("cards", "words"), [(0, 1), (WORD_BITS, 1), (WORD_BITS + 1, 2), (384, 7)])
def test_words_for(cards, words):
    assert words_for(cards) == words


def test_phase_codes_stand_for_the_phases():
    codes = (PHASE_PENDING, PHASE_INQUEUE, PHASE_RUNNING, PHASE_UNKNOWN, PHASE_COMPLETED)
    assert [PHASES[code].value for code in codes] == ["Pending", "Inqueue", "Running", "Unknown", "Completed"]


def test_phases_read_and_write_like_a_list():
    phases = Phases(np.zeros(3, dtype=np.int8))
    phases[1] = GangPhase.COMPLETED
    assert list(phases) == [GangPhase.PENDING, GangPhase.COMPLETED, GangPhase.PENDING]
    assert phases[1] is GangPhase.COMPLETED
    assert phases.where(GangPhase.PENDING) == [0, 2]
    assert len(phases) == 3
