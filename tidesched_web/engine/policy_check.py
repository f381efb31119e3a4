from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scheduler_core.actions.reclaim import Reclaim
from scheduler_core.serde.lint import lint_policy
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.tree import MOST_LINES
from tidesched_web.engine.extender_client import wrong_addresses
from tidesched_web.engine.model import BadInput

__all__ = ["MOST_LINES", "Outline", "cooldown_seconds", "outline", "policy_findings"]


def policy_findings(text: str) -> list[dict[str, Any]]:
    try:
        findings = lint_policy(text)
    except BadInput as error:
        return [_finding(error)]
    found = [{**finding.to_json(), "line": None} for finding in findings]
    with suppress(BadInput):  # said above
        found += [_finding(error) for error in wrong_addresses(parse_policy(text))]
    return sorted(found, key=lambda finding: finding["severity"] != "error")


def _finding(error: BadInput) -> dict[str, Any]:
    return {
        "severity": "error",
        "code": error.code,
        "object": "policy",
        "path": error.path or "",
        "line": error.line,
        "message": error.message,
        "fix": error.hint or "",
    }


@lru_cache(maxsize=64)
def cooldown_seconds(text: str) -> float | None:
    """A policy that decides as upstream has no cool-down, nor has one that cannot be read."""
    try:
        policy = parse_policy(text)
        if Reclaim.name not in policy.actions or policy.compatibility:
            return None
        seconds = float(Reclaim(policy.action_arguments.get(Reclaim.name, {})).values["cooldownSeconds"])
    except BadInput:
        return None
    return seconds or None


@dataclass(frozen=True, slots=True)
class Outline:
    actions: tuple[str, ...]
    tiers: tuple[tuple[str, ...], ...]
    profiles: tuple[str, ...]
    as_upstream: bool


@lru_cache(maxsize=64)
def outline(text: str) -> Outline | None:
    try:
        policy = parse_policy(text)
    except BadInput:
        return None
    tiers = tuple(tuple(plugin.name for plugin in tier) for tier in policy.tiers)
    profiles = tuple(profile.scheduler for profile in policy.profiles)
    return Outline(policy.actions, tiers, profiles, bool(policy.compatibility))
