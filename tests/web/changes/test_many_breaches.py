"""What a refusal costs: what would help is worked out once for all breaches of an edit."""

from __future__ import annotations

from tests.api.cast import ApiClient
from tests.web.changes.ground import H200, QUEUE
from tidesched_web.changes import lending, tree_check
from tidesched_web.common.errors import MOST_ERRORS


def test_what_would_help_is_worked_out_once_for_all_breaches_of_an_edit(ground, monkeypatch):
    """One request may bring thousands of breaches: the tree is summed up once, and the last ones are only counted."""
    sums, words = [], []
    room, above_text = lending.room, lending.above_text
    monkeypatch.setattr(lending, "room", lambda *given: sums.append(1) or room(*given))
    monkeypatch.setattr(tree_check, "above_text", lambda *given: words.append(1) or above_text(*given))
    edits: dict[str, object] = {}
    for number in range(MOST_ERRORS + 50):
        edits[f"project/acme/p{number}"] = {"quota": {"inference": {"card_quota": {H200: 0}}}}
        edits[f"queue/q{number}"] = {**QUEUE, "project": f"p{number}", "card_quota": {H200: 1}}
    answer = ApiClient(ground.users["owner"]).send(
        "quota-changes/?dry_run=true", {"cluster": "east", "edits": edits, "reason": "all at once"}
    )
    plan = answer.json()["plan"]
    # Each breach has a fault at its queue and one at its project.
    assert (len(plan["errors"]), plan["more_errors"]) == (MOST_ERRORS, MOST_ERRORS + 100), answer.content
    assert "has 2 left for that" in plan["errors"][0]["detail"], plan["errors"][0]
    assert (len(sums), len(words)) == (1, MOST_ERRORS)
