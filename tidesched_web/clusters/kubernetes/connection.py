from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tidesched_web.clusters.kubernetes.in_cluster import TokenFile

# Old resolvers read 2852039166, 0xa9fea9fe or 169.254.43518 as an IPv4 address.
_NUMBER = re.compile(r"(^|\.)(\d+|0x[0-9a-f]*)\.?$")
MOST_TOKEN = 20_000
_HOST = re.compile(r"[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?\.?")
# Where networks of IPv6 alone pass packets on to IPv4 addresses.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class BadConnection(ValueError):
    """``said`` is the message with places for ``values``, for the reader's language (``clusters.refusal_words``)."""

    def __init__(self, path: str, said: str, **values: object) -> None:
        self.path, self.said, self.values = path, said, {name: str(value) for name, value in values.items()}
        self.message = said % self.values if values else said
        super().__init__(f"{path}: {self.message}" if path else self.message)


@dataclass(frozen=True)
class Connection:
    """The secrets stay out of ``repr``. ``token_file`` takes the place of ``token`` in the cluster itself."""

    url: str
    ca_certificate: str = ""
    token: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    tls_server_name: str = ""
    token_file: TokenFile | None = field(default=None, repr=False, compare=False)

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def _meant(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def gives_away(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """True for addresses that no cluster has, and some of which answer with secrets or pass them on."""
    address = _meant(address)
    listed = address.is_link_local or address.is_unspecified or address.is_multicast
    return listed or str(address) in ("100.100.100.200", "fd00:ec2::254", "192.0.0.192")


def check_secret_text(text: str, path: str) -> None:
    if len(text) > MOST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
        raise BadConnection(path, "has blanks, line ends or other signs in it, or is too long")


def check_server_name(name: str, path: str) -> None:
    check_secret_text(name, path)
    if not name:
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if len(name) > 253 or not _HOST.fullmatch(name.lower()):
            said = "a host name alone is needed, such as kubernetes.default.svc: no scheme, port or path"
            raise BadConnection(path, said) from None


def check_server(url: str, *, path: str = "server", loopback: bool = False, plain: bool = False) -> str:
    """Private addresses pass; those that give secrets away (link-local metadata, unspecified, multicast) do not."""
    try:
        parts = urlsplit(url.strip())
    except ValueError as error:
        raise BadConnection(path, "this is not an address: %(detail)s", detail=error) from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise BadConnection(path, "an address such as https://10.0.0.1:6443 is needed")
    if not parts.path.isascii() or not parts.path.isprintable() or set(parts.path) & set(" \\%"):
        raise BadConnection(path, "an address such as https://10.0.0.1:6443 is needed")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadConnection(path, "user, password, query and fragment do not belong into the address")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise BadConnection(path, "its port is not a number from 1 to 65535")
    host = parts.hostname
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if not _HOST.fullmatch(host) or len(host) > 253:
            raise BadConnection(path, "an address such as https://10.0.0.1:6443 is needed") from None
        name = host.rstrip(".")
        is_loopback = name == "localhost" or name.endswith(".localhost")
        refused = name in ("metadata", "metadata.google.internal") or _NUMBER.search(host) is not None
    else:
        is_loopback = _meant(address).is_loopback
        refused = gives_away(address)
    if refused or (is_loopback and not loopback):
        raise BadConnection(path, "%(host)s is not an address where a cluster may be", host=host)
    if parts.scheme == "http" and not plain and not (is_loopback and loopback):
        raise BadConnection(path, "https is needed: the token would cross the network in the clear")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
