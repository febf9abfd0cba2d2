"""The client as the proxy sees it: address, scheme, host and port, by forwarded headers if they are trusted."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ingress.message import Request
from ingress.naive.objects import Objects


@dataclass(frozen=True)
class Client:
    """Facts about a request that several steps use."""

    address: str
    scheme: str
    host: str  # with port, as sent
    port: str


def client_of(request: Request, objects: Objects) -> Client:
    """use-forwarded-headers decides the scheme, the host, the port and the address; without it they are the connection's.

    X-Forwarded-Port is 443 for TLS, whatever the listener.
    """
    port = "443" if request.scheme == "https" else str(request.port)
    if objects.setting("use-forwarded-headers") != "true":
        real = objects.setting("enable-real-ip") == "true"
        return Client(
            _address(request) if real else request.peer, request.scheme, request.host, port
        )
    return Client(
        _address(request),
        request.value("x-forwarded-proto") or request.scheme,
        request.value("x-forwarded-host").partition(",")[0] or request.host,
        request.value("x-forwarded-port") or port,
    )


def _address(request: Request) -> str:
    """The leftmost address of X-Forwarded-For that is reached from the right without a bad one (every IPv4 peer is trusted)."""
    listed = [
        one.strip()
        for name, value in request.headers
        if name.lower() == "x-forwarded-for"
        for one in value.split(",")
    ]
    address = request.peer
    for one in reversed(listed):
        try:
            ipaddress.ip_address(one)
        except ValueError:
            break
        address = one
        if ":" in one:
            break
    return address


def name_of_host(host: str) -> str:
    """Host is compared without port, case and trailing dot."""
    return (
        host.rpartition(":")[0].lower().rstrip(".")
        if ":" in host
        else host.lower().removesuffix(".")
    )
