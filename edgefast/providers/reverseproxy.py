"""ReverseProxy: the Gateway API objects of `edgefast run --to`.

In: targets, hostnames, an address, and the PEM files of `--tls` and `--to-ca`.
Out: GatewayClass, Gateway, HTTPRoute and Backends as YAML, with a Secret and a ConfigMap for the
files, and a route that redirects to HTTPS. Targets with the same protocol and TLS settings are endpoints of one Backend; weights of the route make all
endpoints equal.
Must never: connect to an HTTPS target without verification, or put the private key into `render(keys=False)`.
"""

from __future__ import annotations

import base64
import errno
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

from edgefast import netaddr
from edgefast.api.config.edgegateway import DEFAULT_CONTROLLER_NAME
from edgefast.api.limits import MAX_FILE_BYTES
from edgefast.api.model.fields import Hostname, PreciseHostname
from edgefast.api.validation.hostname import check_hostname
from edgefast.httpd.address import EVERYWHERE, Address

__all__ = [
    "MAX_HOSTS",
    "MAX_TARGETS",
    "FilePair",
    "ReverseProxy",
    "Target",
    "parse_host",
    "parse_listen",
    "parse_server_name",
    "parse_target",
]

#: Endpoints of a Backend (docs/reference/backend.md).
MAX_TARGETS = 64
#: Hostnames of an HTTPRoute (Gateway API).
MAX_HOSTS = 16
#: Backends of a rule (Gateway API).
_MAX_BACKENDS = 16
_NAME = "<--to>"
_TARGET_FORMS = (
    "allowed: http://HOST[:PORT], https://HOST[:PORT], h2c://HOST[:PORT], HOST:PORT, unix:/PATH"
)
_LISTEN_FORMS = "allowed: :PORT, IP:PORT, [IPV6]:PORT"
_DEFAULT_PORTS: dict[str, int] = {"http": 80, "h2c": 80, "https": 443}
#: Schemes that gRPC clients use, and the scheme of edgefast for each.
_GRPC = {"grpc": "h2c", "grpcs": "https"}
#: Browsers cache this status, and it is core in the Gateway API.
_MOVED = 301
_LOCALHOST = "localhost"
_LOOPBACK = "127.0.0.1"
#: Bytes of a socket's path (unix(7)), without the terminating zero.
_MAX_SOCKET = 107
_PORT = re.compile(r"[0-9]{1,5}")

Scheme = Literal["http", "h2c", "https", "unix"]


class Target(msgspec.Struct, frozen=True):
    """One `--to`; `host` is an IP address, a DNS name or the path of a socket, `server_name` what its certificate must contain."""

    scheme: Scheme
    host: str
    port: int = 0
    server_name: str = ""

    def endpoint(self) -> dict[str, Any]:
        """Return the endpoint of a Backend."""
        if self.scheme == "unix":
            return {"unix": {"path": self.host}}
        if netaddr.read_address(self.host) is not None:
            return {"ip": {"address": self.host, "port": self.port}}
        return {"fqdn": {"hostname": self.host, "port": self.port}}


class _Group(NamedTuple):
    """What the targets of one Backend have in common."""

    server_name: str  # "" is without TLS
    h2c: bool

    def settings(self, ca: Path | None) -> dict[str, Any]:
        """Return the fields of a Backend beside its endpoints."""
        if self.h2c:
            return {"protocol": "H2C"}
        if not self.server_name:
            return {}
        tls: dict[str, Any] = {"hostname": self.server_name}
        if ca is not None:
            bundle = {"group": "", "kind": "ConfigMap", "name": "backend-ca"}
            tls["caCertificateRefs"] = [bundle]
        return {"tls": tls}


class FilePair(msgspec.Struct, frozen=True):
    """`--tls`: the files of a certificate chain and its private key, PEM."""

    certificate: Path
    key: Path


class ReverseProxy(msgspec.Struct, frozen=True, kw_only=True):
    """The backends and listener of `edgefast run --to`. It is a `Document` of a FileSource."""

    targets: tuple[Target, ...]
    hosts: tuple[str, ...] = ()  # empty: all
    listen: Address
    tls: FilePair | None = None
    redirect_port: int = 0  # of HTTP requests that are redirected to `listen`; 0: none
    ca: Path | None = None  # None: the authorities of the system
    rewrite_host: bool = False
    controller_name: str = DEFAULT_CONTROLLER_NAME  # of the GatewayClass

    @property
    def name(self) -> str:
        """Name in problems."""
        return _NAME

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files that are read again when they change."""
        pair = (self.tls.certificate, self.tls.key) if self.tls is not None else ()
        return (*pair, self.ca) if self.ca is not None else pair

    def check(self) -> str:
        """Return what is wrong with the targets, "" when nothing is."""
        everywhere = self.listen.host == EVERYWHERE
        flags = {self.listen.port: "--listen", self.redirect_port: "--redirect-http"}
        for one in self.targets:
            here = _is_loopback(one.host) if everywhere else one.host == self.listen.host
            if here and one.scheme != "unix" and one.port in flags:
                flag = flags[one.port]
                return (
                    f"{Address(one.host, one.port)} is the address of {flag}, so requests would "
                    f"loop; use another port for {flag}"
                )
        if len(self._groups()) > _MAX_BACKENDS:
            return (
                f"the targets have {len(self._groups())} different protocols and certificate names "
                f"(at most {_MAX_BACKENDS}); use a file with several rules"
            )
        return ""

    def read(self) -> bytes:
        """Return all objects as YAML; raises OSError for a file that is missing or invalid."""
        return self.render(keys=True).encode()

    def render(self, *, keys: bool) -> str:
        """Return the objects as YAML. Without `keys`, a comment with a command replaces the Secret. Raises OSError."""
        objects = list(self._objects())
        if self.tls is None:
            return _dump(objects)
        secret = _make_secret(self.tls)
        return _dump([*objects, secret]) if keys else _explain_secret(self.tls) + _dump(objects)

    def _objects(self) -> Iterable[dict[str, Any]]:
        yield {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": "edge"},
            "spec": {"controllerName": self.controller_name},
        }
        yield self._gateway()
        groups = self._groups()
        names = [f"backend-{at}" for at in range(1, len(groups) + 1)]
        names = names if len(names) > 1 else ["backend"]
        yield _make("gateway.networking.k8s.io/v1", "HTTPRoute", "edge", self._route(names))
        if self.redirect_port:
            yield _make("gateway.networking.k8s.io/v1", "HTTPRoute", "redirect", self._redirect())
        for name, (group, targets) in zip(names, groups.items(), strict=True):
            spec: dict[str, Any] = {"endpoints": [one.endpoint() for one in targets]}
            spec |= group.settings(self.ca)
            yield _make("gateway.edge.io/v1alpha1", "Backend", name, spec)
        if self.ca is not None:
            yield _make_bundle(self.ca)

    def _gateway(self) -> dict[str, Any]:
        listener: dict[str, Any] = {"name": "http", "protocol": "HTTP", "port": self.listen.port}
        if self.tls is not None:
            listener |= {"name": "https", "protocol": "HTTPS"}
            listener["tls"] = {"certificateRefs": [{"name": "certificate"}]}
        spec: dict[str, Any] = {"gatewayClassName": "edge"}
        if self.listen.host != EVERYWHERE:
            spec["addresses"] = [{"type": "IPAddress", "value": self.listen.host}]
        spec["listeners"] = [listener]
        if self.redirect_port:
            plain = {"name": "http", "protocol": "HTTP", "port": self.redirect_port}
            spec["listeners"].append(plain)
        return _make("gateway.networking.k8s.io/v1", "Gateway", "edge", spec)

    def _route(self, names: list[str]) -> dict[str, Any]:
        spec = self._attach("https" if self.redirect_port else "")
        groups = self._groups()
        references = []
        for name, (group, targets) in zip(names, groups.items(), strict=True):
            one: dict[str, Any] = {"group": "gateway.edge.io", "kind": "Backend", "name": name}
            if len(groups) > 1:
                one["weight"] = len(targets)
            if self.rewrite_host and group.server_name:
                rewrite = {"hostname": group.server_name}
                one["filters"] = [{"type": "URLRewrite", "urlRewrite": rewrite}]
            references.append(one)
        spec["rules"] = [{"backendRefs": references}]
        return spec

    def _redirect(self) -> dict[str, Any]:
        """Return the `spec` of the route that redirects HTTP requests to the listener of HTTPS."""
        spec = self._attach("http")
        redirect = {"scheme": "https", "port": self.listen.port, "statusCode": _MOVED}
        spec["rules"] = [{"filters": [{"type": "RequestRedirect", "requestRedirect": redirect}]}]
        return spec

    def _attach(self, listener: str) -> dict[str, Any]:
        """Return the beginning of the `spec` of a route; `listener` "" selects the only one."""
        parent = {"name": "edge"}
        if listener:
            parent["sectionName"] = listener
        spec: dict[str, Any] = {"parentRefs": [parent]}
        if self.hosts:
            spec["hostnames"] = list(self.hosts)
        return spec

    def _groups(self) -> dict[_Group, list[Target]]:
        """Return the targets of each Backend."""
        groups: dict[_Group, list[Target]] = {}
        for one in self.targets:
            groups.setdefault(_Group(one.server_name, one.scheme == "h2c"), []).append(one)
        return groups


def _is_loopback(host: str) -> bool:
    address = netaddr.read_address(host)
    return address is not None and address.is_loopback


def parse_target(text: str, server_name: str = "") -> Target:
    """Parse one `--to`; raises ValueError with the allowed forms. `server_name`: of HTTPS targets, "" takes their host."""
    if text.startswith("unix:"):
        return _parse_socket(text)
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError:  # a bracket without its partner, for example
        raise ValueError(f'"{text}": invalid URL ({_TARGET_FORMS})') from None
    if "@" in parts.netloc:  # not shown: it may be a password
        raise ValueError(
            f"a user name or password in a URL is not supported ({_TARGET_FORMS}); "
            "edgefast forwards the Authorization header of the client"
        )
    if parts.scheme not in _DEFAULT_PORTS:
        instead = _GRPC.get(parts.scheme)
        fix = f"; use {instead}://{parts.netloc} for gRPC" if instead else ""
        raise ValueError(
            f'"{text}": scheme "{parts.scheme}" is not supported ({_TARGET_FORMS}){fix}'
        )
    if parts.path not in ("", "/") or "?" in text or "#" in text:
        raise ValueError(
            f'"{text}": a path, query or fragment is not supported ({_TARGET_FORMS}); '
            "the path of each request is forwarded unchanged"
        )
    host, port = _split_port(text, parts.netloc)
    if port is None and "://" not in text:
        raise ValueError(f'"{text}": port is missing ({_TARGET_FORMS})')
    host = host or (_LOCALHOST if "://" not in text else "")
    host = _check_host(text, host)
    scheme: Scheme = parts.scheme  # type: ignore[assignment] # a key of _DEFAULT_PORTS
    port = _DEFAULT_PORTS[scheme] if port is None else port
    address = _LOOPBACK if host == _LOCALHOST else host
    if scheme != "https":
        return Target(scheme, address, port)
    if not server_name and netaddr.read_address(host) is not None:
        raise ValueError(
            f'"{text}": an IP address needs --to-server-name NAME, the DNS name that the '
            "certificate of the target must contain"
        )
    return Target(scheme, address, port, server_name or host)


def _parse_socket(text: str) -> Target:
    path = "/" + text.removeprefix("unix:").lstrip("/")
    if not text.startswith("unix:/") or not 1 < len(path.encode()) <= _MAX_SOCKET:
        raise ValueError(
            f'"{text}": invalid socket (allowed: unix:/PATH with at most {_MAX_SOCKET} bytes)'
        )
    return Target("unix", path)


def _split_port(text: str, netloc: str) -> tuple[str, int | None]:
    """Return host and port of `HOST[:PORT]`; an IPv6 address loses its brackets."""
    found = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([^:]*))?", netloc)
    if found is None:
        raise ValueError(f'"{text}": write an IPv6 address as [ADDRESS]:PORT')
    host, port = found[1].strip("[]"), found[2]
    if port is None:
        return host, None
    return host, _check_port(text, port, _TARGET_FORMS)


def _check_port(text: str, port: str, forms: str) -> int:
    if not _PORT.fullmatch(port) or not 0 < int(port) <= 65535:
        raise ValueError(f'"{text}": port must be 1-65535 ({forms})')
    return int(port)


def _check_host(text: str, host: str) -> str:
    address = netaddr.read_address(host)
    if address is not None:
        if address.is_unspecified:
            raise ValueError(f'"{text}": {host} is not an address of a backend; use {_LOOPBACK}')
        return str(address)
    name = host.lower()
    if not _is_valid(name, PreciseHostname):
        raise ValueError(f'"{text}": invalid host ({_TARGET_FORMS}; HOST is a DNS name or an IP)')
    return name


def parse_host(text: str) -> str:
    """Parse one `--host`; raises ValueError with the allowed forms."""
    name = text.lower()
    if not _is_valid(name, Hostname):
        hint = "; without --host all names are served" if text == "*" else ""
        raise ValueError(
            f'"{text}": invalid hostname (allowed: a DNS name such as shop.example.com or '
            f"*.example.com, without port{hint})"
        )
    return name


def parse_server_name(text: str) -> str:
    """Parse `--to-server-name`; raises ValueError with the allowed form."""
    name = text.lower()
    if not _is_valid(name, PreciseHostname):
        raise ValueError(
            f'"{text}": invalid name (allowed: a DNS name such as shop.example.com, '
            "without wildcard and port)"
        )
    return name


def parse_listen(text: str) -> Address:
    """Parse `--listen`; raises ValueError with the allowed forms."""
    host, separator, port = text.rpartition(":")
    if host.startswith("[") != host.endswith("]") or (":" in host and host[0] != "["):
        raise ValueError(f'"{text}": write an IPv6 address as [ADDRESS]:PORT ({_LISTEN_FORMS})')
    if not separator:
        hint = f"; write :{text}" if text.isascii() and text.isdigit() else ""
        raise ValueError(f'"{text}": invalid address ({_LISTEN_FORMS}){hint}')
    number = _check_port(text, port, _LISTEN_FORMS)
    if not host:
        return Address(EVERYWHERE, number)
    address = netaddr.read_address(_LOOPBACK if host == _LOCALHOST else host.strip("[]"))
    if address is None:
        raise ValueError(
            f'"{text}": "{host}" is not an IP address ({_LISTEN_FORMS}); --host selects names'
        )
    return Address(EVERYWHERE if address.is_unspecified else str(address), number)


def _is_valid(name: str, kind: Any) -> bool:
    try:
        msgspec.convert(name, type=kind)
    except msgspec.ValidationError:
        return False
    return not check_hostname(name)


def _make(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _make_secret(pair: FilePair) -> dict[str, Any]:
    """Return the Secret of a certificate; raises OSError when it cannot be read or is not valid."""
    from edgefast.translate.tls.certificate import parse_pair  # 25 ms, of the TLS library

    chain, key = _read_file(pair.certificate), _read_file(pair.key)
    parsed = parse_pair(chain, key)
    if isinstance(parsed, str):
        why = parsed.replace("tls.crt", str(pair.certificate)).replace("tls.key", str(pair.key))
        raise OSError(errno.EINVAL, why)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "certificate", "namespace": "default"},
        "type": "kubernetes.io/tls",
        "data": {
            "tls.crt": base64.b64encode(chain).decode(),
            "tls.key": base64.b64encode(key).decode(),
        },
    }


def _make_bundle(path: Path) -> dict[str, Any]:
    """Return the ConfigMap of `--to-ca`; raises OSError when it cannot be read or is not valid."""
    from edgefast.translate.tls.certificate import parse_bundle

    parsed = parse_bundle(_read_file(path))
    if isinstance(parsed, str):
        raise OSError(errno.EINVAL, parsed.replace("ca.crt", str(path)))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "backend-ca", "namespace": "default"},
        "data": {"ca.crt": parsed.decode("ascii")},
    }


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise OSError(error.errno, f"{path}: {error.strerror or error}") from None


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines, such as certificates, as blocks."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)


def _dump(objects: Iterable[dict[str, Any]]) -> str:
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=1_000_000)
    return text


def _explain_secret(pair: FilePair) -> str:
    """Return a comment with the command that writes the Secret: the key itself is not printed."""
    certificate, key = shlex.quote(str(pair.certificate)), shlex.quote(str(pair.key))
    text = (
        "apiVersion: v1\\nkind: Secret\\nmetadata: {name: certificate, namespace: default}\\n"
        "type: kubernetes.io/tls\\ndata:\\n  tls.crt: %s\\n  tls.key: %s\\n"
    )
    return (
        "# The Secret of --tls has a private key and is not printed. This command writes it:\n"
        f"#   (umask 077; printf '{text}' \"$(base64 -w0 {certificate})\" "
        f'"$(base64 -w0 {key})" > certificate.yaml)\n'
    )
