import datetime as dt
from dataclasses import dataclass

from django.db import Error as DatabaseError
from django.db import transaction
from django.utils import timezone

from tidesched_web.audit.findings import ChainReport
from tidesched_web.audit.models import ChainCheck
from tidesched_web.audit.selectors import chain_checks, chain_heads, waiting_checks
from tidesched_web.audit.signed_evidence import Trust
from tidesched_web.audit.verification import chains, trust, verify_chain
from tidesched_web.common.failures import described

CHECK_EVERY = dt.timedelta(days=1)
# A walk of so many entries takes a moment; longer ones are left to a worker.
AT_ONCE = 300


@dataclass(frozen=True, slots=True)
class Asked:
    done: list[ChainReport]
    waiting: list[str]


def ask(*, actor: str) -> Asked:
    """Verify every chain: short ones now, long ones in a worker."""
    held, heads, done, waiting = trust(), chain_heads(), [], []
    for chain in chains(held):
        if chain not in heads or heads[chain].seq <= AT_ONCE:
            report = _check_or_say(chain, held)
            done += [report] if report is not None else []
            continue
        ChainCheck.objects.update_or_create(
            chain=chain, defaults={"requested_at": timezone.now(), "requested_by": actor}
        )
        waiting.append(chain)
    if waiting:
        transaction.on_commit(_wake, robust=True)
    return Asked(done, waiting)


def _wake() -> None:
    from tidesched_web.audit.tasks import check_chains  # the task calls this module

    check_chains.apply_async(retry=False)


def check(chain: str, held: Trust) -> ChainReport:
    report = verify_chain(chain, held)
    ChainCheck.objects.update_or_create(
        chain=chain,
        defaults={
            "requested_at": None,
            "finished_at": timezone.now(),
            "first_seq": report.first_seq,
            "checked": report.checked,
            "last_hash": report.last_hash,
            "broken_seq": report.broken_seq,
            "kind": report.kind,
            "problem": report.problem,
        },
    )
    return report


def check_due() -> list[ChainReport]:
    edge = timezone.now() - CHECK_EVERY
    held, checks = trust(), chain_checks()
    old = [
        chain
        for chain in chains(held)
        if (known := checks.get(chain)) is None or known.finished_at is None or known.finished_at < edge
    ]
    reports = (_check_or_say(chain, held) for chain in dict.fromkeys([*waiting_checks(), *old]))
    return [report for report in reports if report is not None]


def _check_or_say(chain: str, held: Trust) -> ChainReport | None:
    """A check that fails says so and keeps no other waiting; it comes again."""
    try:
        return check(chain, held)
    except DatabaseError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug; said, and no other chain waits for it
        values = {"requested_at": None, "finished_at": None, "problem": described(error)}
        ChainCheck.objects.update_or_create(chain=chain, defaults=values)
        return None
