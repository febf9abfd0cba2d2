"""Connections to collectors, held to the addresses that may be backends (translate/backend/reserved.py).

In: the endpoint of an EdgeProxy's tracing, and the ranges that the administrator allows. Out: for HTTP a session whose every connection, also
after a redirect, is made to an allowed address; for gRPC the allowed addresses, to which the channel is pinned. Where every range is allowed
(`edgefast run` without a limit) the libraries connect by themselves. Needs the extra `edgefast[tracing]`.
Must never: connect to an address before it is checked.
"""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from edgefast import ir
from edgefast.netaddr import ANY_NETWORK, read_address, why_reserved

__all__ = ["guarded_session", "is_guarded", "pinned_target", "resolve"]

#: Addresses of one name that are tried.
_ADDRESSES = 8


def is_guarded(tracing: ir.Tracing) -> bool:
    """Tell whether some addresses are refused."""
    return tracing.allowed != ANY_NETWORK


def resolve(host: str, port: int, allowed: tuple[str, ...]) -> list[str]:
    """Return the addresses of a host that may be connected to, the first one first. Raises OSError; blocks."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    refused = ""
    addresses: list[str] = []
    for address in dict.fromkeys(str(one[4][0]) for one in found):
        if what := why_reserved(address, allowed):
            refused = f"{host} resolves to {address}, which is never a collector ({what})"
        else:
            addresses.append(address)
    if not addresses:
        raise OSError(refused or f"{host} has no address")
    return addresses[:_ADDRESSES]


def guarded_session(tracing: ir.Tracing) -> requests.Session:
    """Return a session that connects to allowed addresses only."""
    allowed = tracing.allowed

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _connect(self.host, self.port, allowed, self.timeout)

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _connect(self.host, self.port, allowed, self.timeout)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options)
            self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    session = requests.Session()
    session.trust_env = False  # a proxy of the environment would connect in place of this process
    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter())
    return session


def _connect(host: str, port: int, allowed: tuple[str, ...], timeout: Any) -> socket.socket:
    last = OSError(f"{host} has no address")
    for address in resolve(host.strip("[]"), port, allowed):
        try:
            return socket.create_connection((address, port), timeout)
        except OSError as error:
            last = error
    raise last


def pinned_target(tracing: ir.Tracing) -> tuple[str, Any]:
    """Return a gRPC target with the allowed addresses of the endpoint's host, and options that keep its name. Raises OSError; blocks."""
    parts = urlsplit(tracing.endpoint)
    host, port = parts.hostname or "", parts.port or 0
    addresses = resolve(host, port, tracing.allowed)
    kind = ":" in addresses[0]
    same = [one for one in addresses if (":" in one) is kind]
    places = ",".join(f"[{one}]:{port}" if kind else f"{one}:{port}" for one in same)
    options: tuple[tuple[str, str], ...] = (("grpc.default_authority", parts.netloc),)
    if read_address(host) is None:
        options += (("grpc.ssl_target_name_override", host),)
    return f"{'ipv6' if kind else 'ipv4'}:{places}", options
