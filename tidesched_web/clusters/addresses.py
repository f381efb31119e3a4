"""Which addresses a cluster may have: its credentials are sent there with every request."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from tidesched_web.common.errors import DomainError


def checked_address(text: str, *, simulated: bool) -> str:
    """The address of an API server without its closing slash.

    https, or plain http on this machine and for the simulated cluster: a token of worth must not cross a network in
    the clear. No user, query or fragment, which a mistaken copy would bring along.
    """
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise _refusal(text, "it is not an address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _refusal(text, "it has to begin with https:// and name a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _refusal(text, "it may hold no user, query or fragment")
    if parts.scheme == "http" and not simulated and not _is_this_machine(host):
        raise _refusal(text, "plain http is for servers on this machine; use https")
    return address


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refusal(text: str, why: str) -> DomainError:
    shown = text.rpartition("@")[2]  # a password in front of the host is not repeated
    return DomainError.for_field("/api_url", f"{shown!r} cannot be a cluster's address: {why}.")
