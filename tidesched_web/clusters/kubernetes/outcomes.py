import enum
from dataclasses import dataclass
from typing import Any

from tidesched_web.clusters.kubernetes.answers import message_of

# Where a throttling server does not say how long it wants to rest.
_REST_SECONDS = 1.0


class OutcomeKind(enum.StrEnum):
    DONE = "done"  # it is as asked, by this call or already
    GONE = "gone"  # the object (with this uid) is not there any more
    CONFLICT = "conflict"  # it is there, but otherwise than expected: look again
    REFUSED = "refused"  # the cluster says no and will say it again (rights, rules, a disruption budget)
    UNREACHABLE = "unreachable"  # no answer, or none about the request itself: it may have happened or not


@dataclass(frozen=True)
class Outcome:
    """``maybe_done``: the request may have arrived: ask before repeating. ``away``: the next would end so too.
    ``of_budget``: a disruption budget says so, which is its purpose."""

    kind: OutcomeKind
    reason: str = ""
    message: str = ""
    maybe_done: bool = False
    away: bool = False
    retry_after: float = 0.0
    body: dict[str, Any] | None = None
    of_budget: bool = False

    @property
    def done(self) -> bool:
        return self.kind is OutcomeKind.DONE

    @property
    def settled(self) -> bool:
        """Nothing is left to ask for: it is so, or it cannot be for this object."""
        return self.kind not in (OutcomeKind.UNREACHABLE, OutcomeKind.REFUSED)


def from_status(code: int, body: dict[str, Any], *, retry_after: float = 0.0) -> Outcome:
    if 200 <= code < 300:
        return Outcome(OutcomeKind.DONE, body=body)
    reason, message = message_of(body, "reason") or f"HTTP {code}", message_of(body)
    if code == 404 or code == 410:
        return Outcome(OutcomeKind.GONE, reason, message)
    if _is_another_object(code, body, message):
        return Outcome(OutcomeKind.GONE, "Replaced", message)
    if code == 409:
        return Outcome(OutcomeKind.CONFLICT, reason, message)
    if code == 401:  # about the caller, not about the request: a token that has expired will be replaced
        return Outcome(OutcomeKind.UNREACHABLE, reason, message, away=True)
    of_budget = any(cause.get("reason") == "DisruptionBudget" for cause in _causes(body))
    if code == 429 and not of_budget:  # throttled before anything was done
        return Outcome(OutcomeKind.UNREACHABLE, reason, message, retry_after=retry_after or _REST_SECONDS)
    if code >= 500:
        # A pod with several disruption budgets is answered with 500, and will be again.
        if "more than one PodDisruptionBudget" in message:
            return Outcome(OutcomeKind.REFUSED, reason, message, of_budget=True)
        return Outcome(OutcomeKind.UNREACHABLE, reason, message, maybe_done=True, away=code == 503)
    return Outcome(OutcomeKind.REFUSED, reason, message, of_budget=of_budget)


def _is_another_object(code: int, body: dict[str, Any], message: str) -> bool:
    """The API says so in words only, and for a patch as the attempt to change an immutable field."""
    if code == 409:
        return "UID in " in message
    return code == 422 and any(cause.get("field") == "metadata.uid" for cause in _causes(body))


def _causes(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A proxy before the server may put anything there."""
    details = body.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
