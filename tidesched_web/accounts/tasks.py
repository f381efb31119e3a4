"""Celery tasks of accounts."""

from __future__ import annotations

from celery import shared_task

from tidesched_web.accounts.services import sign_ins


@shared_task(name="accounts.record_rest", queue="work", expires=60)
def record_rest() -> None:
    """Write the sign-ins that were only counted."""
    sign_ins.record_rest()
