"""Which card a misspelt name means, name by name."""

from __future__ import annotations

import pytest

from scheduler_core.model.card_names import nearest_card

KNOWN = ("NVIDIA-H100", "NVIDIA-H200", "NVIDIA-H800", "NVIDIA-L40S", "Ascend-910B")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("NVIDIA-H20", "NVIDIA-H200"),
        ("NVIDIA-H200x", "NVIDIA-H200"),
        ("H200x", "NVIDIA-H200"),
        ("h200", "NVIDIA-H200"),
        ("NVIDA-H200", "NVIDIA-H200"),
        ("NVIDIA-H020", "NVIDIA-H200"),
        ("NVIDIA-H20O", "NVIDIA-H200"),
        ("NVIDIA-L40", "NVIDIA-L40S"),
        ("Ascend-910", "Ascend-910B"),
        ("NVIDIA-B300", None),
        ("NVIDIA-B200", None),
        ("NVIDIA-GB200", None),
        ("NVIDIA-A100", None),
        ("NVIDIA-H400", None),
        ("Ascend-910C", None),
        ("L40x", None),
        ("gpu", None),
        ("", None),
    ],
)
def test_only_a_slip_of_the_pen_is_answered_with_a_card(given, meant):
    assert nearest_card(given, KNOWN) == meant


def test_no_card_is_near_where_none_is_known():
    assert nearest_card("NVIDIA-H200", ()) is None
