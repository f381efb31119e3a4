from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.utils import timezone


def keep(*, user_id: int, session_key: str) -> None:
    """Sessions from before Redis was emptied are not counted, and end by their age."""
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore
    name = f"sessions:of:{user_id}"
    keys = [*(key for key in cache.get(name, []) if key != session_key), session_key]
    for old in keys[: -settings.KEPT_SESSIONS]:
        store(old).delete()
    cache.set(name, keys[-settings.KEPT_SESSIONS :], timeout=settings.SESSION_COOKIE_AGE)


def clear_expired() -> int:
    return Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]
