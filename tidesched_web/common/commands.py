from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.management.base import CommandError

from tidesched_web.common.errors import DomainError

BAD_INPUT = 2


def answers_domain_errors(handle: Callable[..., None]) -> Callable[..., None]:
    @wraps(handle)
    def run(*args: Any, **options: Any) -> None:
        try:
            handle(*args, **options)
        except DomainError as error:
            raise CommandError(error.message, returncode=BAD_INPUT) from None

    return run
