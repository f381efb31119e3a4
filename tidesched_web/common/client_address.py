"""The one place that reads ``X-Forwarded-For``: any client may write it, so only a trusted proxy's part is believed."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_address(peer: str, forwarded: Iterable[str]) -> str:
    if not from_proxy(peer):
        return peer
    proxies = _networks(tuple(settings.TRUSTED_PROXIES))
    for hop in reversed([hop for header in forwarded for hop in header.split(",")]):
        address = _address(hop)
        if address is None:  # what is left of it was written by no proxy of ours
            break
        if not proxies or not _one_of(address, proxies):
            return str(address)
    return peer


@lru_cache(maxsize=4096)
def counted_as(address: str) -> str:
    """What the limits count a client's address by: of IPv6 the network of 64 bits, all of which one host can use."""
    found = _address(address)
    if found is None or found.version == 4:
        return str(found) if found else address
    return str(ipaddress.ip_network((found, 64), strict=False))


def from_proxy(peer: str) -> bool:
    proxies = _networks(tuple(settings.TRUSTED_PROXIES))
    if not proxies:
        return bool(settings.BEHIND_PROXY)
    address = _address(peer)
    return address is not None and _one_of(address, proxies)


def is_within(address: str, networks: Iterable[str]) -> bool:
    """Whether an address is in one of these networks."""
    found = _address(address)
    return found is not None and _one_of(found, _networks(tuple(networks)))


def _one_of(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


def _address(text: str) -> Address | None:
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


@lru_cache(maxsize=8)
def _networks(words: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(word, strict=False) for word in words)
