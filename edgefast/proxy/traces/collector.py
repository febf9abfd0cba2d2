"""Connections to collectors, limited to the addresses that may be backends (translate/backend/reserved.py).

In: the endpoint of an EdgeProxy's tracing, the ranges that the administrator allows, and the
proxy's own ports.
Out: for HTTP a session that connects to allowed addresses only; for gRPC the allowed addresses, to
which the channel is pinned. Both ignore proxies of the environment, because such a proxy would
connect in place of this process. If every range is allowed (`edgefast run` without a limit), the
libraries connect by themselves. A redirect is a failure in both cases. Needs the extra
`edgefast[tracing]`.
Must never: connect to an address before it is checked.
"""

from __future__ import annotations

import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from edgefast import ir
from edgefast.local_address import leads_to
from edgefast.netaddr import ANY_NETWORK, read_address, why_reserved

__all__ = ["Pin", "is_guarded", "open_session", "pinned_target", "resolve"]

#: Addresses of one name that are tried.
_ADDRESSES = 8


class Pin(NamedTuple):
    """A gRPC target of checked addresses."""

    target: str  # at most _ADDRESSES, in the resolver's order
    options: Any  # pairs, some with a number: the exporter's type allows one pair of strings
    addresses: frozenset[str]  # all allowed addresses of the target's IP version


def is_guarded(tracing: ir.Tracing) -> bool:
    """Tell whether some addresses are refused."""
    return tracing.allowed != ANY_NETWORK


def resolve(
    host: str, port: int, allowed: tuple[str, ...], own_ports: tuple[int, ...]
) -> list[str]:
    """Return the allowed addresses of a host, in the resolver's order. Raises OSError; blocks."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    refused = ""
    addresses: list[str] = []
    for address in dict.fromkeys(str(one[4][0]) for one in found):
        if what := why_reserved(address, allowed):
            refused = f"{host} resolves to {address}, which is never a collector ({what})"
        elif leads_to(address, port, own_ports):
            refused = f"{address}:{port} is a server of this proxy, which is never a collector"
        else:
            addresses.append(address)
    if not addresses:
        raise OSError(refused or f"{host} has no address")
    return addresses


def open_session(tracing: ir.Tracing, own_ports: tuple[int, ...]) -> requests.Session:
    """Return a session without redirects; if addresses are refused, one that connects to allowed addresses only."""
    allowed = tracing.allowed
    session = requests.Session()
    # 307 and 308 would repeat the POST elsewhere; OpenTelemetry's exporter counts spans as accepted when it does not follow them.
    session.max_redirects = 0
    if not is_guarded(tracing):
        return session

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _connect(self.host, self.port, allowed, own_ports, self.timeout)

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _connect(self.host, self.port, allowed, own_ports, self.timeout)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options)
            self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter())
    return session


def _connect(
    host: str, port: int, allowed: tuple[str, ...], own_ports: tuple[int, ...], timeout: Any
) -> socket.socket:
    last = OSError(f"{host} has no address")
    for address in resolve(host.strip("[]"), port, allowed, own_ports)[:_ADDRESSES]:
        try:
            return socket.create_connection((address, port), timeout)
        except OSError as error:
            last = error
    raise last


def pinned_target(tracing: ir.Tracing, own_ports: tuple[int, ...]) -> Pin:
    """Return a gRPC target with the allowed addresses of the endpoint's host, and options that keep its name. Raises OSError; blocks."""
    parts = urlsplit(tracing.endpoint)
    host, port = parts.hostname or "", parts.port or 0
    addresses = resolve(host, port, tracing.allowed, own_ports)
    kind = ":" in addresses[0]
    same = [one for one in addresses if (":" in one) is kind]
    places = ",".join(f"[{one}]:{port}" if kind else f"{one}:{port}" for one in same[:_ADDRESSES])
    options: tuple[tuple[str, str | int], ...] = (
        ("grpc.default_authority", parts.netloc),
        ("grpc.enable_http_proxy", 0),
    )
    if read_address(host) is None:
        options += (("grpc.ssl_target_name_override", host),)
    return Pin(f"{'ipv6' if kind else 'ipv4'}:{places}", options, frozenset(same))
