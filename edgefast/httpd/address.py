"""Addresses as users write them: `127.0.0.1:19000`, `[::1]:19000`, `:19000`, `off`.

In: the text of a command line option.
Out: an `Address`, or ValueError with the allowed forms.
Must never: resolve a name; an address is used as written.
"""

from __future__ import annotations

import ipaddress
import socket

import msgspec

from edgefast import netaddr

__all__ = ["EVERYWHERE", "Address", "check_ip", "family_of", "parse_address"]

#: All addresses of both families, for a server that is bound by `httpserver.bind_server`.
EVERYWHERE = "::"


class Address(msgspec.Struct, frozen=True):
    """One TCP address; an empty host is every address, port 0 lets the kernel choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_ip(text: str) -> str:
    """Return an IPv4 or IPv6 address in its canonical text; ValueError when it is none."""
    host = text.strip("[]")
    try:
        return str(
            netaddr.read_address(host) or ipaddress.ip_address(host)
        )  # a link-local one has its scope
    except ValueError:
        raise ValueError(f'"{text}" is not an IPv4 or IPv6 address') from None


def family_of(host: str) -> socket.AddressFamily:
    """Return AF_INET6 for an IPv6 address, else AF_INET."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def parse_address(text: str) -> Address | None:
    """Parse `HOST:PORT`, `[HOST]:PORT`, `:PORT` (all addresses) or `PORT` (loopback); `off` gives None.

    Raises ValueError naming what is wrong and the allowed forms.
    """
    if text == "off":
        return None
    host, separator, port = text.rpartition(":")
    if not separator:
        host, port = "127.0.0.1", text
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f'"{text}": port must be 0-65535 (allowed: HOST:PORT, [IPV6]:PORT, off)')
    if host.startswith("[") != host.endswith("]") or (":" in host and host[0] != "["):
        raise ValueError(f'"{text}": write an IPv6 address as [ADDRESS]:PORT')
    if host == "localhost":
        host = "127.0.0.1"
    return Address(check_ip(host) if host else EVERYWHERE, int(port))
