"""The plain integers are those of the enum."""

from __future__ import annotations

from scheduler_core.state import status


def test_integers_and_enum_agree():
    for member in status.TaskStatus:
        assert getattr(status, member.name) == member.value
    assert not (status.CHARGED & ~status.HOLDS).any()
    assert not (status.READY & ~status.VALID).any()
