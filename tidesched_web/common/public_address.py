"""The address by which people reach TideSched."""

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request


def absolute(request: HttpRequest | Request, path: str) -> str:
    """`PUBLIC_URL` rules where it was given: a proxy may hand on another host than the one that was asked."""
    return f"{settings.GIVEN_URL}{path}" if settings.GIVEN_URL else str(request.build_absolute_uri(path))
