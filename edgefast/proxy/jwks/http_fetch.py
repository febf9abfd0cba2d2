"""HTTP fetch: one request to an issuer over HTTP/1.1, with a deadline and size limits.

In: a Target; a form for a token endpoint.
Out: the answer, or FetchError with a reason that may be logged. A redirect is an error: the server
that answers would decide which issuer is trusted. Of a GET each status other than 200 is one.
Must never: follow a redirect, retry, or accept a certificate that does not match the target.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import NamedTuple

import h11

from edgefast.auth.jwt.key_set import SET_LIMIT
from edgefast.local_address import leads_to
from edgefast.netaddr import read_address, why_reserved
from edgefast.proxy.jwks.target import Place, Target, shows
from edgefast.rate_limit.names import Names

__all__ = ["DEADLINE", "FetchError", "Form", "fetch", "send_form"]

#: Seconds of a whole fetch.
DEADLINE = 10.0
_HEAD = 16 * 1024
_CHUNK = 64 * 1024
_INTERIM = 8  # answers 1xx before the one that counts
_CLOSING = 1.0  # seconds

_ERRORS = (OSError, ssl.SSLError, asyncio.IncompleteReadError, UnicodeError)
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FetchError(Exception):
    """It could not be had; the text says why."""


class Form(NamedTuple):
    """A form for a token endpoint."""

    body: bytes
    authorization: str = ""  # "": no such header
    limit: int = SET_LIMIT  # bytes of the answer

    def __repr__(self) -> str:
        return "Form(<redacted>)"


async def fetch(
    target: Target, names: Names, deadline: float = DEADLINE, *, own_ports: tuple[int, ...] = ()
) -> bytes:
    """Return the body of what is there. Raises FetchError. `own_ports`: ports of this machine that are never asked."""
    return (await _request(target, names, deadline, own_ports, None))[1]


async def send_form(
    target: Target,
    form: Form,
    names: Names,
    deadline: float = DEADLINE,
    *,
    own_ports: tuple[int, ...] = (),
) -> tuple[int, bytes]:
    """Return status and body of the answer to a form, of every status but redirects. Raises FetchError."""
    return await _request(target, names, deadline, own_ports, form)


async def _request(
    target: Target, names: Names, deadline: float, own_ports: tuple[int, ...], form: Form | None
) -> tuple[int, bytes]:
    try:
        async with asyncio.timeout(deadline):
            reader, writer = await _connect(target, names, own_ports)
            try:
                return await _exchange(target, reader, writer, form)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise FetchError(f"no answer within {deadline:g} s") from None
    except h11.RemoteProtocolError as error:
        raise FetchError(f"the answer is not HTTP: {error}") from None
    except h11.LocalProtocolError:
        raise FetchError("the uri cannot be requested") from None
    except _ERRORS as error:
        raise FetchError(_write_message(error)) from None


async def _connect(target: Target, names: Names, own_ports: tuple[int, ...]) -> _Streams:
    """Connect to the first place that takes it."""
    last: Exception = FetchError("the source has no address")
    for place in target.places:
        try:
            streams = await _dial(target, place, names, own_ports)
        except _ERRORS as error:
            last = error
            continue
        if target.sans:
            shown = streams[1].get_extra_info("peercert") or {}
            if not shows(shown.get("subjectAltName", ()), target.sans):
                streams[1].transport.abort()
                last = FetchError("its certificate does not contain a required name")
                continue
        return streams
    raise last


async def _dial(target: Target, place: Place, names: Names, own_ports: tuple[int, ...]) -> _Streams:
    host, port = place
    tls, name = target.tls, target.server_name if target.tls is not None else None
    if port < 0:
        return await asyncio.open_unix_connection(host, ssl=tls, server_hostname=name)
    last: OSError = OSError("the name has no address")
    is_name = read_address(host) is None  # addresses were checked when the objects were translated
    for address in await names.resolve(host):
        if (is_name or target.discovered) and (what := why_reserved(address, target.allowed)):
            last = OSError(
                f"{host} resolves to {address}, which is not allowed as a backend ({what})"
            )
            continue
        if leads_to(address, port, own_ports):
            last = OSError(f"{address}:{port} is a server of this proxy, which is never a backend")
            continue
        try:
            return await asyncio.open_connection(address, port, ssl=tls, server_hostname=name)
        except ssl.SSLError:
            raise
        except OSError as error:
            last = error
    raise last


async def _exchange(
    target: Target,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    form: Form | None,
) -> tuple[int, bytes]:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
    headers = [
        ("host", target.authority),
        ("accept", "application/json" if form else "application/jwk-set+json, application/json"),
        ("accept-encoding", "identity"),
        ("user-agent", "edgefast"),
        ("connection", "close"),
    ]
    if form is not None:
        headers.append(("content-type", "application/x-www-form-urlencoded"))
        headers.append(("content-length", str(len(form.body))))
        if form.authorization:
            headers.append(("authorization", form.authorization))
    method = "GET" if form is None else "POST"
    request = h11.Request(method=method, target=target.path, headers=headers)
    out = connection.send(request) or b""
    if form is not None:
        out += connection.send(h11.Data(data=form.body)) or b""
    writer.write(out + (connection.send(h11.EndOfMessage()) or b""))
    await writer.drain()
    limit = SET_LIMIT if form is None else form.limit
    body, interim, status = bytearray(), 0, 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.InformationalResponse):
            interim += 1
            if interim > _INTERIM:
                raise FetchError("too many informational answers came before the answer")
        elif isinstance(event, h11.Response):
            _check(event, form)
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > limit:
                raise FetchError(f"the answer has more than {limit} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return status, bytes(body)
        else:
            raise FetchError("the connection was closed before the answer")


def _check(response: h11.Response, form: Form | None) -> None:
    status = response.status_code
    if 300 <= status < 400:
        raise FetchError(f"the answer is a redirect ({status}), which is not followed")
    if form is None and status != 200:
        raise FetchError(f"the answer has status {status}")
    for name, value in response.headers:
        if name == b"content-encoding" and value.lower() != b"identity":
            raise FetchError("the answer is compressed, which edgefast does not accept")


def _write_message(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'the connection was closed'}"
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved: {error.strerror}"
    if isinstance(error, OSError):  # asyncio says who it was in place of what it was
        return os.strerror(error.errno).lower() if error.errno else str(error)
    return "the name cannot be resolved"
