"""The Celery application, whose workers wait at a gate after they have reported and before they take messages."""

import os
from pathlib import Path

from celery.signals import worker_init

from tidesched_web.celery import app

__all__ = ["app"]


@worker_init.connect
def _wait(**_: object) -> None:
    Path(os.environ["GATE"]).read_text()
