"""Texts of people in exported tables: no spreadsheet runs them, no terminal obeys them, and a table reads back."""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest

from tests.api.cast import H200, ApiClient
from tests.api.test_quota_changes import act, drafted
from tests.web.console.test_audit import download
from tidesched_web.changes import tree_csv
from tidesched_web.changes.selectors import read_tree
from tidesched_web.common.spreadsheets import guarded, unguarded

REASON = "＝cmd|calc!A0 \x1b[31m red \u202eeulb\u2066\u200b\rback\r\nnext"
SHOWN = "'＝cmd|calc!A0 \\u001B[31m red \\u202Eeulb\\u2066\\u200B\\u000Dback\nnext"


def test_no_export_holds_a_formula_or_a_sign_that_is_not_seen(world):
    change = drafted(world.client("owner"), reason=REASON)
    assert act(world.client("owner"), change, "apply").json()["state"] == "applied"
    admin = world.users["admin"]
    texts = {
        "audit": download(admin, "/api/v1/audit/?format=csv"),
        "changes": ApiClient(admin).get("/clusters/east/changes/?format=csv").content.decode("utf-8-sig"),
    }
    for path, text in texts.items():
        cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
        assert SHOWN in cells, path
        hidden = {sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf")} - {"\r", "\n"}
        assert not hidden, (path, hidden)


@pytest.mark.parametrize(
    "text",
    [
        *(f"{sign}1+1" for sign in ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠", "'=", "''@")),
        "\x1b]0;title\x07", "a\u202eb", "\U000e0041", "a\\u202Eb", "\\u005Cu202E", "\\u0041", "it's", "a\tb\nc", "",
    ],
)  # fmt: skip
def test_a_cell_is_read_again_as_the_text_that_it_was(text):
    cell = guarded(text, exact=True)
    assert unguarded(cell) == text
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠"))
    assert not [sign for sign in cell if unicodedata.category(sign) in ("Cc", "Cf") and sign not in "\t\n"]


def test_the_table_of_the_tree_reads_back_with_names_that_look_like_formulas(world):
    card, tenant = "=NVIDIA\x1b-X\u202e", "-acme"
    documents = {key: dict(document) for key, document in read_tree(world.clusters["east"]).items()}
    queue = documents["queue/acme-online"]
    queue |= {"tenant": tenant, "project": "+chat", "card_quota": {card: 3}}
    text = tree_csv.dumps(documents, [H200, card])
    assert tree_csv.loads(text, documents, [H200, card]) == {}
    edits = tree_csv.loads(text.replace(",3,", ",4,"), documents, [H200, card])
    assert edits == {"queue/acme-online": {"card_quota": {card: 4}}}
