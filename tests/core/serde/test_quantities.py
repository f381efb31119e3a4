"""Quantities and card counts that make no sense: one message each, at once."""

import pytest

from scheduler_core.model.resources import TooLarge, parse_cpu_milli, parse_extended, parse_memory_mib
from scheduler_core.serde.kubernetes.quantities import read_card_counts


@pytest.mark.parametrize("text", ["9" * 40, "9" * 40 + "Ei", "1e400"])
def test_a_whole_number_beyond_all_is_too_large_and_no_accident(text):
    with pytest.raises(TooLarge):
        parse_extended(text)


@pytest.mark.parametrize("text", ["1e99999999", "1e999990", "9" * 4000, "-1e999990"])
def test_an_exponent_of_a_million_digits_is_refused_without_writing_them_out(text):
    with pytest.raises(ValueError, match=r"more than|negative"):
        parse_cpu_milli(text)


def test_next_to_nothing_still_counts_as_the_smallest_amount():
    assert parse_cpu_milli("1e-999990") == 1
    assert parse_memory_mib("1e-999990", capacity=True) == 0


@pytest.mark.parametrize("text", ["1_000", "٣", "１", "", "0x10"])
def test_what_python_reads_as_a_number_and_no_api_server_does_is_refused(text):
    with pytest.raises(ValueError, match="not a quantity"):
        parse_cpu_milli(text)


@pytest.mark.parametrize("name", ["a\\u0000", "a\\ud800", "a\\n"])
def test_a_card_whose_name_no_database_takes_is_said_in_plain_letters(name):
    with pytest.raises(ValueError, match="no name of a card") as caught:
        read_card_counts(f'{{"{name}": 1}}', ".metadata.annotations")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["[" * 100_000, "x" * 100_000, '["' + "x" * 100_000 + '"]'])
def test_a_huge_annotation_gets_a_short_message(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - whatever it says, it has to be short
        read_card_counts(text, ".metadata.annotations")
    assert len(str(caught.value)) < 200
