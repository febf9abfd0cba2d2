"""Request spec: a request, or a connection that is passed through, as a user writes it.

In: the arguments of a command line or of a form: method, URL, header lines, client address, SNI.
Out: `RequestSpec`, with the bytes that a plain client (curl) would send for it. The Host line
follows from the URL unless one is given. The port of the URL is the listener's, the SNI is the
URL's name for https.
Must never: normalise what was written; the proxy does that, and may refuse it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

import msgspec

from edgefast.netaddr import read_address

_URL = re.compile(
    r"(?:(https?|grpcs?|tcp|tls|udp)://)?([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.I | re.S
)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@\[\]]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": 80, "https": 443, "tls": 443}
#: What is no request: it is passed on unread.
STREAMS = frozenset({"tcp", "tls", "udp"})
#: What a call is, and over what it comes.
_CALLS = {"grpc": "http", "grpcs": "https"}
_CALL_FIELDS = (("content-type", "application/grpc"), ("te", "trailers"))


class RequestSpecError(ValueError):
    """What was written is no request; the message says what is wrong with it."""


class RequestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One request to one port."""

    method: str = "GET"
    scheme: str = "http"
    port: int = 80  # the listener's
    host: str  # the value of Host, as sent
    target: str = "/"  # path and query, as sent
    headers: tuple[tuple[str, str], ...] = ()  # in order, without Host
    source: str = "127.0.0.1"  # address of the connection's other end
    sni: str = ""  # "": none; https only
    address: str = ""  # that the client connects to; "": the listeners' first
    http10: bool = False  # in HTTP/1.0
    has_host: bool = True  # False: it is sent without Host
    now: float = 0.0  # Unix seconds; 0: tokens are judged as of a time when they are valid

    def url(self) -> str:
        """Return the URL that asks for it."""
        target = "" if self.target == "*" or self.scheme in STREAMS else self.target
        return f"{self.scheme}://{self.host}{target}"

    def name(self) -> str:
        """Return the name of Host, without port and final dot, in lower case."""
        return re.sub(r":\d*$", "", self.host).lower().removesuffix(".")

    def head(self) -> bytes:
        """Return the request head."""
        lines = [f"{self.method} {self.target} HTTP/1.{0 if self.http10 else 1}"]
        lines += [f"Host: {self.host}"] if self.has_host else []
        lines += [f"{name}: {value}" for name, value in self.headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def read_request_spec(
    method: str,
    url: str,
    headers: Sequence[str] = (),
    source: str = "127.0.0.1",
    sni: str | None = None,
    address: str = "",
    *,
    http10: bool = False,
) -> RequestSpec:
    """Read a request; headers are "name: value", `sni` None is what a client would send. Raises AskError.

    "Host:" without a value: the request has no Host, as with curl.

    `address`: that the client connects to; "": the URL's, where that is an address.

    tcp://host:port, tls://name[:port] and udp://host:port are connections and datagrams. A URL of gRPC, grpc://host/package.Service/Method (grpcs: over TLS), is a call: a POST that says so.
    """
    found = _URL.fullmatch(url)
    assert found is not None  # every text is one
    scheme = (found[1] or "http").lower()
    is_call = scheme in _CALLS
    if is_call:
        method, scheme = "POST", _CALLS[scheme]
    authority = _AUTHORITY.fullmatch(found[2])
    if authority is None:
        raise RequestSpecError(f'"{url}" is not a URL such as http://www.example.com/shop')
    given = authority[2] or _DEFAULT_PORTS.get(scheme)
    if given is None:
        raise RequestSpecError(f'"{url}": a port is needed, such as {scheme}://{authority[1]}:5432')
    name, port = authority[1], int(given)
    address = _read_address(address or name.strip("[]"), given=bool(address))
    if not 0 < port < 65536:
        raise RequestSpecError(f'"{url}": port {port} is not between 1 and 65535')
    if scheme in STREAMS:
        return _read_stream(
            scheme, name, port, url, found[3] + (found[4] or ""), headers, source, sni, address
        )
    host = name if port == _DEFAULT_PORTS[scheme] else f"{name}:{port}"
    lines = [_read_header(line) for line in headers]
    if is_call:
        given = {header.lower() for header, _ in lines}
        lines += [field for field in _CALL_FIELDS if field[0] not in given]
    named = [value for header, value in lines if header.lower() == "host"]
    if len(named) > 1:
        raise RequestSpecError("Host is given twice")
    if read_address(source) is None:
        raise RequestSpecError(f'"{source}" is not an IP address')
    if sni is None:
        sni = name if scheme == "https" and not _is_address(name) else ""
    target = "*" if method == "OPTIONS" and found[3] == "*" else found[3] or "/"
    return RequestSpec(
        method=method,
        scheme=scheme,
        port=port,
        host=named[0] if named and named[0] else host,
        target=target + (found[4] or ""),
        headers=tuple((header, value) for header, value in lines if header.lower() != "host"),
        source=source,
        sni=_read_name(sni),
        address=address,
        http10=http10,
        has_host=named != [""],
    )


def _read_stream(
    scheme: str,
    name: str,
    port: int,
    url: str,
    rest: str,
    headers: Sequence[str],
    source: str,
    sni: str | None,
    address: str,
) -> RequestSpec:
    """Read what is no request; TLS asks for the URL's name unless that is an address."""
    if rest not in ("", "/") or headers:
        raise RequestSpecError(f'"{url}": TCP, TLS and UDP have no path and no headers')
    if read_address(source) is None:
        raise RequestSpecError(f'"{source}" is not an IP address')
    if sni and scheme != "tls":
        raise RequestSpecError(f"{scheme}:// has no TLS server name")
    if sni is None:
        sni = name if scheme == "tls" and not _is_address(name) else ""
    host = name if port == _DEFAULT_PORTS.get(scheme) else f"{name}:{port}"
    return RequestSpec(
        method="CONNECT",
        scheme=scheme,
        port=port,
        host=host,
        source=source,
        sni=_read_name(sni),
        address=address,
    )


def _read_address(text: str, *, given: bool) -> str:
    address = read_address(text)
    if address is None and given:
        raise RequestSpecError(f'"{text}" is no IP address')
    return "" if address is None else str(address)


def _read_header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise RequestSpecError(f'"{line}" is not a header such as "x-user: one"')
    return name.strip(), value.strip()


def _read_name(sni: str) -> str:
    """Return a TLS name as a server reads it (csrc/hello.c): in lower case, without the dot at its end. Raises AskError."""
    name = sni.lower().removesuffix(".")
    if sni and "" in name.split("."):
        raise RequestSpecError(f'"{sni}" is not a TLS server name: it has an empty label')
    return name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
