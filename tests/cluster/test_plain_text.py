"""NUL in what a cluster sends: one annotation would end every session that reports it."""

from __future__ import annotations

import orjson
import pytest

from tidesched_web.clusters.kubernetes import plain_text


@pytest.mark.parametrize("text", ["\0", "a\0\0b", "\\\0", "\\u0000", "\\\\u0000", "\\\\\0\\u0000", "plain", ""])
def test_nul_becomes_the_sign_for_what_cannot_be_shown(text: str) -> None:
    sent = {"metadata": {"annotations": {f"k{text}": text}}}
    said = text.replace("\0", "\ufffd")
    assert plain_text.loads(orjson.dumps(sent)) == {"metadata": {"annotations": {f"k{said}": said}}}
