"""Target: the address from which a key set is fetched, and the names that the server's certificate must have.

In: ir.RemoteKeys; if it names a cluster, also that cluster and the secrets of its TLS, from the
table.
Out: the request line and host, the addresses to connect to, and the requirements for the
certificate; or TargetError.
Must never: replace https with http, or accept a server for a name that its certificate was not
checked for.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from edgefast import ir
from edgefast.ir.credentials import RemoteKeys

__all__ = ["Place", "Target", "TargetError", "find_target", "shows"]

#: Endpoints of a cluster that are tried for one fetch.
PLACES = 4
_URI_LIMIT = 2048

#: (host, port), or a unix socket's path and -1.
Place = tuple[str, int]


class TargetError(ValueError):
    """A set cannot be fetched from there; the text says why."""


class Target(NamedTuple):
    """One source, ready to be asked."""

    authority: str  # of the Host line
    path: str  # with the query
    places: tuple[Place, ...]  # the first one is tried first
    tls: ssl.SSLContext | None
    server_name: str = ""  # of the TLS handshake
    sans: tuple[tuple[ir.NameType, str], ...] = ()  # one of which a certificate must show
    allowed: tuple[str, ...] = ()  # ranges that names may resolve into, see ir.Cluster
    discovered: bool = (
        False  # an answer of the network names it: addresses are checked as names are
    )


def find_target(
    spec: RemoteKeys,
    cluster: ir.Cluster | None,
    secret: Callable[[str], ir.Secret | None],
    *,
    discovered: bool = False,
) -> Target:
    """Return where to ask. `cluster`: the one that `spec` names, if the table has it; `discovered`: a discovery
    document names the uri. Raises TargetError.
    """
    if len(spec.uri) > _URI_LIMIT or not spec.uri.isascii() or not spec.uri.isprintable():
        raise TargetError("the uri is not a URL")
    try:
        parts = urlsplit(spec.uri)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise TargetError("the uri is not a URL") from None
    if parts.scheme not in ("https", "http") or not host or " " in spec.uri:
        raise TargetError("the uri is not a valid https URL")
    if parts.username is not None or parts.password is not None:
        raise TargetError("the uri contains a user")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    secure = parts.scheme == "https"
    if not spec.cluster:
        if not secure:
            raise TargetError("keys must be fetched with https if no backend is set")
        place = (host, port or 443)
        return Target(
            parts.netloc,
            path,
            (place,),
            _context(),
            host,
            allowed=spec.allowed,
            discovered=discovered,
        )
    if cluster is None:
        raise TargetError(f"{spec.cluster} not found")
    places = tuple(map(_place, (*cluster.endpoints, *cluster.fallback)[:PLACES]))
    if not places:
        raise TargetError(f"{spec.cluster} has no endpoints")
    if cluster.protocol == "h2":
        raise TargetError(f"{spec.cluster} supports only HTTP/2; keys are fetched with HTTP/1.1")
    if cluster.tls is None:
        plain = _context() if secure else None
        return Target(parts.netloc, path, places, plain, host, allowed=cluster.allowed)
    tls = cluster.tls
    if tls.insecure:
        raise TargetError(
            f"{spec.cluster} does not verify certificates; keys need a verified server"
        )
    context = _context()
    if tls.ca:
        context = _by_names(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        _trust(context, _found(secret, tls.ca).ca, tls.ca)
    if tls.certificate:
        _show(context, _found(secret, tls.certificate), tls.certificate)
    context.check_hostname = not tls.sans
    name = tls.sni or host
    return Target(parts.netloc, path, places, context, name, tls.sans, cluster.allowed)


def _context() -> ssl.SSLContext:
    return _by_names(ssl.create_default_context())


def _by_names(context: ssl.SSLContext) -> ssl.SSLContext:
    """Have a certificate checked by its subjectAltNames alone (RFC 9110 4.3.4)."""
    context.hostname_checks_common_name = False
    return context


def _place(endpoint: ir.Endpoint) -> Place:
    if not endpoint.hostname and not endpoint.port:
        return endpoint.address, -1
    return endpoint.hostname or endpoint.address, endpoint.port


def _found(secret: Callable[[str], ir.Secret | None], name: str) -> ir.Secret:
    found = secret(name)
    if found is None:
        raise TargetError(f"{name} not found")
    return found


def _trust(context: ssl.SSLContext, bundle: bytes, name: str) -> None:
    try:
        context.load_verify_locations(cadata=bundle.decode())
    except (ValueError, ssl.SSLError):
        raise TargetError(f"{name} has no readable certificates") from None


def _show(context: ssl.SSLContext, pair: ir.Secret, name: str) -> None:
    """Load a client certificate, which the library takes from a file alone: one in memory, that nobody else sees."""
    with os.fdopen(os.memfd_create("edgefast-pair", os.MFD_CLOEXEC), "wb") as file:
        file.write(pair.certificate + b"\n" + pair.private_key)
        file.flush()
        try:
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_password)
        except (ssl.SSLError, ValueError, OSError):
            raise TargetError(f"{name} cannot be loaded") from None


def _no_password() -> bytes:
    raise ValueError("encrypted")


def shows(names: Iterable[tuple[str, str]], sans: Iterable[tuple[ir.NameType, str]]) -> bool:
    """Tell whether a certificate of these subjectAltNames (as `ssl` names them) has one of those that are asked for."""
    shown = {(kind, value.lower() if kind == "DNS" else value) for kind, value in names}
    for kind, value in sans:
        if kind == "URI":
            if ("URI", value) in shown:
                return True
            continue
        name = value.lower().rstrip(".")
        if ("DNS", name) in shown or ("DNS", "*." + name.partition(".")[2]) in shown:
            return True
    return False
