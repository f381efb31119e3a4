"""What is wrong with a policy, and what is allowed in it and yet not what its author means."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from scheduler_core.actions.reclaim import Reclaim
from scheduler_core.serde.lint import lint_policy
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.tree import MOST_LINES
from tidesched_web.engine.model import BadInput

__all__ = ["MOST_LINES", "cooldown_seconds", "policy_findings"]


def policy_findings(text: str) -> list[dict[str, Any]]:
    """Findings as `lint --conf` prints them, errors first; an error means that no session could run under it."""
    try:
        findings = lint_policy(text)
    except BadInput as error:
        told = error.to_json()["error"]
        return [
            {
                "severity": "error",
                "code": error.code,
                "object": "policy",
                "path": error.path or "",
                "line": error.line,
                "message": told["message"],
                "fix": error.hint or "",
            }
        ]
    found = [{**finding.to_json(), "line": None} for finding in findings]
    return sorted(found, key=lambda finding: finding["severity"] != "error")


@lru_cache(maxsize=64)
def cooldown_seconds(text: str) -> float | None:
    """How long action reclaim of this policy does not evict a gang again; None where it has no such time.

    A policy that decides as upstream has no cool-down, nor has one that cannot be read.
    """
    try:
        policy = parse_policy(text)
        if Reclaim.name not in policy.actions or policy.compatibility:
            return None
        seconds = float(Reclaim(policy.action_arguments.get(Reclaim.name, {})).values["cooldownSeconds"])
    except BadInput:
        return None
    return seconds or None
