"""What is wrong with a policy, and what is allowed in it and yet not what its author means."""

from __future__ import annotations

from typing import Any

from scheduler_core.serde.lint import lint_policy
from tidesched_web.engine.model import BadInput


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
