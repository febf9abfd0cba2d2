"""Targets: a controller's address in gRPC's notation.

In: HOST:PORT as users write it.
Out: the gRPC target, or ValueError.
Must never: resolve names; gRPC resolves them again for every connection.
"""

from __future__ import annotations

import ipaddress

__all__ = ["make_target"]


def make_target(text: str) -> str:
    """Return `dns:///HOST:PORT`, `ipv4:...` or `ipv6:...`; ValueError says what is allowed."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit():
        raise ValueError(f'"{text}" is not an address (allowed: HOST:PORT)')
    if not 0 < int(port) <= 65535:
        raise ValueError(f'"{text}": port must be 1-65535')
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f'"{text}": write an IPv6 address as [ADDRESS]:PORT')
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if not all(c.isalnum() or c in "-._" for c in host):
            raise ValueError(f'"{text}": {host} is neither a name nor an address') from None
        return f"dns:///{host}:{port}"
    return f"ipv{address.version}:{text}"
