"""The URL of a service, as its users type it: behind a proxy it may lie below a path."""

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from epsearch.failures.errors import UsageError

PORTS = {"http": 80, "https": 443}
"""Scheme -> its default port."""
PAGES = (
    *("api", "changes", "compare", "health", "help", "ledger", "metrics", "new", "people", "ready"),
    *("sign-in", "sign-out", "static", "studies"),
)
"""First parts of the paths of a service: no part of the path below which it lies has such a name."""


class ServiceUrl(NamedTuple):
    """A parsed URL."""

    scheme: str
    """http or https."""
    host: str
    """Name or address, in lower case; of IPv6 without brackets."""
    place: str
    """Host and port as in a Host header, without a default port."""
    root: str
    """Path below which the service lies, without a slash at its end; "" for none."""

    @property
    def origin(self) -> str:
        """The origin of its pages, as browsers send it."""
        return f"{self.scheme}://{self.place}"

    def __str__(self) -> str:
        return self.origin + self.root


def parse(text: str, name: str = "url") -> ServiceUrl:
    """Returns a URL of a service, also from that of one of its pages; name: of the option.

    Raises UsageError.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in PORTS or not parts.hostname or parts.query or "@" in parts.netloc:
        raise UsageError(f"{name} must be like https://HOST:PORT/PATH, got {without_login(text)!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = host if port in (None, PORTS[parts.scheme]) else f"{host}:{port}"
    root = ""
    for part in filter(None, parts.path.split("/")):
        if part in PAGES:
            break
        root += f"/{part}"
    return ServiceUrl(parts.scheme, parts.hostname, place, root)


def without_login(url: str) -> str:
    """Returns a URL without its user and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2]
    return url if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def is_loopback(host: str) -> bool:
    """Returns whether a name or address is of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def same_place(scheme: str, host: str, other: str) -> bool:
    """Returns whether two Host headers name the same place for pages of a scheme: a default port may be left out."""
    port = f":{PORTS[scheme]}"
    return host.lower().removesuffix(port) == other.lower().removesuffix(port)
