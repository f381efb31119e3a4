"""A policy's author could make this machine ask any address: each address of the name is checked, and the connection
goes to the checked one; a redirect is not followed, an answer has a size.
"""

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from scheduler_core.framework.extender_client import ExtenderError
from tidesched_web.engine.model import BadInput, Policy

MOST_BYTES = 8 * 1024 * 1024
_METADATA = ("metadata", "metadata.google.internal")


# Where clouds answer with a machine's credentials, and what passes a packet on to such a place: shared address space,
# addresses of protocols, the unique local addresses of clouds, 6to4, Teredo and local NAT64.
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "fd00:ec2::/32", "fd20:ce::/32",
        "2001::/32", "2002::/16", "64:ff9b:1::/48", "fec0::/10",
    )
)  # fmt: skip
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")


def refused(address: ipaddress.IPv4Address | ipaddress.IPv6Address, *, loopback: bool = False) -> bool:
    """Whether no extender may be there: metadata services and what leads to them, in every form of the address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_loopback:
            return not loopback
        if address.ipv4_mapped is not None or address in _NAT64 or address in _COMPATIBLE:
            # The last 32 bits are an IPv4 address, and the packet goes there.
            return refused(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF), loopback=loopback)
    elif address.is_loopback:
        return not loopback
    named = any(address in network for network in _NEVER)
    return named or address.is_link_local or address.is_unspecified or address.is_multicast or address.is_reserved


def _parts(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise ExtenderError(f"{url[:200]!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password or parts.fragment:
        raise ExtenderError(f"{url[:200]!r} is not an address such as https://extender.example/verb")
    return parts, host, port


def _not_there(host: str) -> ExtenderError:
    return ExtenderError(f"{host} is not an address where an extender may be")


def check_written(url: str) -> None:
    """As it is written; names are looked up when one is asked."""
    _split, host, _port = _parts(url)
    name = host.lower().rstrip(".")
    if name in _METADATA or name == "localhost" or name.endswith(".localhost"):
        raise _not_there(host)
    try:
        address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(name))  # 2130706433 and 0x7f.1 are addresses too
        except (OSError, ValueError):
            return
    if refused(address):
        raise _not_there(host)


def wrong_addresses(policy: Policy) -> Iterator[BadInput]:
    named = (("tiers", policy.tiers), *((f"profiles[{p}].tiers", one.tiers) for p, one in enumerate(policy.profiles)))
    for at, tiers in named:
        for t, tier in enumerate(tiers):
            for number, option in enumerate(tier):
                url = option.arguments.get("extender.urlPrefix") if option.name == "extender" else None
                try:
                    if url:
                        check_written(str(url))
                except ExtenderError as error:
                    yield BadInput(
                        "bad_extender_address",
                        f"extender.urlPrefix: {error}",
                        path=f"{at}[{t}].plugins[{number}].arguments.extender.urlPrefix",
                        value=str(url)[:200],
                        hint="the address of another machine, such as https://extender.example:8443/volcano",
                    )


class HttpExtenderClient:
    """``loopback``: this machine may be asked too."""

    def __init__(self, *, loopback: bool = False) -> None:
        self._loopback = loopback

    def post(self, url: str, body: bytes, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        parts, host, port = _parts(url)
        address = self._address(host, port)
        target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        try:
            return self._exchange(parts.scheme, host, address, port, target, body, deadline)
        except (OSError, http.client.HTTPException) as error:
            raise ExtenderError(f"{host}: {type(error).__name__}: {error}") from None

    def _address(self, host: str, port: int) -> str:
        if host.lower().rstrip(".") in _METADATA:
            raise _not_there(host)
        try:
            found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as error:
            raise ExtenderError(f"{host}: {error}") from None
        for text in found:
            if refused(ipaddress.ip_address(text.partition("%")[0]), loopback=self._loopback):
                raise ExtenderError(f"{host} ({text}) is not an address where an extender may be")
        return found[0]

    @staticmethod
    def _exchange(scheme: str, host: str, address: str, port: int, target: str, body: bytes, deadline: float) -> bytes:
        connection = http.client.HTTPConnection(host, port, timeout=_left(deadline))
        try:
            plain = socket.create_connection((address, port), timeout=_left(deadline))
            # The certificate is that of the name; the connection is that of the address which was looked at.
            secure = scheme == "https"
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", target, body, headers)
            connection.sock.settimeout(_left(deadline))
            answer = connection.getresponse()
            if answer.status != 200:
                raise ExtenderError(f"{host} answers {answer.status} {answer.reason}")
            chunks, size = [], 0
            while chunk := answer.read1(65_536):
                size += len(chunk)
                if size > MOST_BYTES:
                    raise ExtenderError(f"{host} answers more than {MOST_BYTES} bytes")
                chunks.append(chunk)
                if connection.sock is not None:
                    connection.sock.settimeout(_left(deadline))
            return b"".join(chunks)
        finally:
            connection.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
