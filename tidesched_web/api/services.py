import datetime as dt
from collections.abc import Mapping

from django.utils import timezone

from tidesched_web.api.models import StoredAnswer
from tidesched_web.common.encryption import decrypt, encrypt
from tidesched_web.common.errors import DomainError

KEPT_FOR = dt.timedelta(hours=24)
# A request that has not ended by now died with its process; its key may be used again.
IN_FLIGHT_FOR = dt.timedelta(minutes=2)


def caller_of(account: int, token: int | None) -> str:
    """Whose key it is. Another token is another caller: it must not read what this one was answered."""
    return f"u{account}" + (f":t{token}" if token is not None else "")


def begin(*, account: int, token: int | None, key: str, request_hash: str) -> StoredAnswer:
    """The unique constraint decides between two that come at once; the loser hears that the other is under way."""
    caller = caller_of(account, token)
    now = timezone.now()
    StoredAnswer.objects.filter(started_at__lt=now - KEPT_FOR).delete()
    found, mine = StoredAnswer.objects.get_or_create(
        caller=caller, key=key, defaults={"request_hash": request_hash, "started_at": now}
    )
    if mine:
        return found
    if found.request_hash != request_hash:
        raise DomainError("idempotency_key_reused", "This Idempotency-Key was used for another request.")
    if found.status is None:
        stale = StoredAnswer.objects.filter(pk=found.pk, status__isnull=True, started_at__lt=now - IN_FLIGHT_FOR)
        if not stale.update(started_at=now):
            raise DomainError("request_in_flight", "The first request with this Idempotency-Key is under way.")
        found.started_at = now
    return found


def finish(answer: StoredAnswer, *, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    answer.status, answer.headers = status, dict(headers)
    answer.body, answer.body_key_id = encrypt(body)
    answer.save(update_fields=["status", "body", "body_key_id", "headers"])


def abandon(answer: StoredAnswer) -> None:
    """A COMMIT that was sent and not answered may have succeeded; where it is under way, this waits for it."""
    StoredAnswer.objects.filter(pk=answer.pk, status__isnull=True, started_at=answer.started_at).delete()


def stored_body(answer: StoredAnswer) -> bytes:
    return decrypt(bytes(answer.body), answer.body_key_id)
