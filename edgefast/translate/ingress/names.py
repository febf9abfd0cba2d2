"""Names: the host names of all servers, and the TLS listener of each.

In: servers, the default certificate, the hosts that are not among them. Out: `Name`s. A name has a listener of its own if a Secret covers it; else it has the
listener of the wildcard just above it, else the listener without a host name, which has the default certificate.
Source: ingress-nginx certificate.lua (`get_pem_cert_key_or_default`), controller.go (`createServers`), nginx.go (`configureCertificates`).
Must never: let two hosts have one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.ingress.client_tls import ClientTls
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.lookup import covers
from edgefast.translate.ingress.sections import DEFAULT
from edgefast.translate.ingress.servers import CATCH_ALL, Server, Source
from edgefast.translate.ingress.values import annotation_path

_NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """One host name of a server."""

    name: str  # CATCH_ALL of the catch-all host
    redirects: bool  # it has a certificate, which ssl-redirect asks for
    listener: str | None  # hostname of its TLS listener; None: requests over TLS are not served


class TlsListener(msgspec.Struct, frozen=True, kw_only=True):
    """A TLS listener with a host name."""

    name: str
    secret: Key | None  # None: TLS is passed through
    owner: ObjectRef
    field: str
    client: ClientTls | None = None  # the rule for client certificates


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """The names of each server, and all TLS listeners with a name."""

    by_host: dict[str, list[Name]]
    listeners: dict[str, TlsListener]
    #: By host: a name that only redirects to the host, with or without www, and its owner.
    www: dict[str, tuple[Name, Source]]
    notes: dict[str, list[tuple[Source, Note]]]  # by host


class Others(Protocol):
    """The hosts that are not among the servers."""

    def server(self, host: str) -> Server | None:
        """Return the server of a host."""

    def listens(self, name: str) -> bool:
        """Tell whether a name has a TLS listener."""


class NoOthers:
    """All hosts are among the servers."""

    def server(self, host: str) -> Server | None:
        """Return None."""
        return None

    def listens(self, name: str) -> bool:
        """Return False."""
        return False


def find_names(servers: Mapping[str, Server], default: Key | None, others: Others) -> Names:
    """Return the names of servers; `default`: the Secret of the default certificate."""
    return _Builder(servers, default, others).build()


class _Builder:
    def __init__(self, servers: Mapping[str, Server], default: Key | None, others: Others) -> None:
        self._servers = servers
        self._others = others
        self._default = default
        self._listeners: dict[str, TlsListener] = {}
        self._notes: dict[str, list[tuple[Source, Note]]] = {}
        self._taken = set(self._servers)
        #: By alias: the last host that lists it, whose certificate it has, as in ingress-nginx.
        self._securing: dict[str, Server] = {}

    def build(self) -> Names:
        # nginx reads these servers first: their names have priority over aliases.
        other_names = list(self._claim_www())
        aliases = {host: self._aliases(self._servers[host]) for host in sorted(self._servers)}
        for host in sorted(self._servers):
            for name in (host, *aliases[host]):
                self._add_listener(self._servers[host], name)
        for host in sorted(self._servers):
            self._check_client(self._servers[host], aliases[host])
            for late in self._servers[host].late_passthrough:
                message = "no effect: the first Ingress of the host does not have it, and decides"
                self._note(
                    self._servers[host],
                    late,
                    Note(name="ssl-passthrough", message=message, error=True),
                )
        by_host = {
            host: [self._name(self._servers[host], name) for name in (host, *aliases[host])]
            for host in sorted(self._servers)
        }
        www = {one.host: self._redirecting(other, one, owner) for other, one, owner in other_names}
        return Names(by_host=by_host, listeners=self._listeners, www=www, notes=self._notes)

    def _aliases(self, server: Server) -> list[str]:
        found = []
        for alias in server.aliases:
            assert server.alias_owner is not None
            if not _NAME.fullmatch(alias):
                message = f'"{alias}": not served (allowed: a host name, or *. before one)'
                note = Note(name="server-alias", message=message, error=True, reason="NotSupported")
                self._note(server, server.alias_owner, note)
            elif alias in self._taken:
                if alias in self._securing:
                    self._securing[alias] = server
                message = f'"{alias}" is already a name of another host; it is ignored'
                self._note(server, server.alias_owner, Note(name="server-alias", message=message))
            else:
                self._taken.add(alias)
                self._securing[alias] = server
                found.append(alias)
        return found

    def _covered(self, server: Server, name: str) -> bool:
        """Tell whether a name of a server has a certificate of a Secret, or of its host."""
        certificate = self._securing.get(name, server).certificate
        if certificate is None:
            return False
        return name == server.host or (
            certificate.secret is not None and covers(certificate.names, name)
        )

    def _add_listener(self, server: Server, name: str) -> None:
        certificate, passes = self._securing.get(name, server).certificate, server.passthrough
        if passes is not None and name == server.host:
            if not name.startswith("*."):
                field = annotation_path("ssl-passthrough")
                self._listeners[name] = TlsListener(
                    name=name, secret=None, owner=passes.ref, field=field
                )
                return
            message = "no effect on a wildcard host, as in ingress-nginx; TLS is terminated"
            self._note(server, passes, Note(name="ssl-passthrough", message=message))
        if certificate is None or not self._covered(server, name):
            return
        secret = certificate.secret or self._default
        if secret is not None:
            self._listeners[name] = TlsListener(
                name=name,
                secret=secret,
                owner=certificate.owner.ref,
                field=certificate.field,
                client=_rule_of(server),
            )
        if certificate.secret is None and name == server.host:
            self._note_default(server)

    def _check_client(self, server: Server, aliases: list[str]) -> None:
        """Close a host that cannot have its rule for client certificates, and names of it for TLS."""
        client, owner = server.client_tls, server.client
        if client is None or owner is None:
            return
        wrong = server.client_wrong
        if not wrong and client.rule is not None and server.host not in self._listeners:
            wrong = "the host has no certificate in spec.tls"
        if wrong:
            server.closed_by = server.closed_by or owner
            message = f"{wrong}; all locations of {server.host} answer 503"
            note = Note(name="auth-tls-secret", message=message, error=True, reason="NotSupported")
            self._note(server, owner, note)
        elif client.rule is not None:
            for alias in aliases:
                if alias not in self._listeners:
                    message = f"the certificate does not cover the alias {alias}; requests for it over TLS get 404"
                    note = Note(
                        name="auth-tls-secret", message=message, error=True, reason="NotSupported"
                    )
                    self._note(server, owner, note)

    def _note_default(self, server: Server) -> None:
        """Note that a host has the default certificate, and what that means for clients."""
        certificate = server.certificate
        assert certificate is not None
        effect = "clients get the default certificate"
        hint = ""
        if self._default is None:
            effect = f"TLS handshakes for {server.host} fail"
            hint = "name a default certificate (--ingress-certificate, EdgeGateway ingress.certificate)"
        message = f"no Secret with a certificate for {server.host}; {effect}"
        note = Note(
            name=certificate.field,
            message=message,
            hint=hint,
            error=self._default is None,
            reason="InvalidCertificateRef",
        )
        self._note(server, certificate.owner, note)

    def _note(self, server: Server, owner: Source, note: Note) -> None:
        self._notes.setdefault(server.host, []).append((owner, note))

    def _name(self, server: Server, name: str) -> Name:
        return Name(
            name=name,
            redirects=self._redirects(server, name),
            listener=self._listener_of(name, server),
        )

    def _redirects(self, server: Server, name: str) -> bool:
        if name == CATCH_ALL:
            return False
        if self._covered(server, name):
            return True
        above = self._above(name)
        return above is not None and above.certificate is not None

    def _above(self, name: str) -> Server | None:
        """Return the wildcard host just above a name."""
        wildcard = _wildcard_above(name)
        return (self._servers.get(wildcard) or self._others.server(wildcard)) if wildcard else None

    def _listener_of(self, name: str, server: Server | None = None) -> str | None:
        if server is not None and _rule_of(server) is not None and name not in self._listeners:
            return None  # the listener of other hosts does not ask for certificates
        if name in self._listeners:
            return name if self._listeners[name].secret is not None else None
        above = _wildcard_above(name)
        if above in self._listeners or self._others.listens(above):
            return above
        return DEFAULT if self._default is not None else None

    def _claim_www(self) -> Iterator[tuple[str, Server, Source]]:
        """Take the other names of from-to-www-redirect: the name, the server that it redirects to, the Ingress with the annotation."""
        for host in sorted(self._servers):
            server = self._servers[host]
            if server.www is None or host == CATCH_ALL or host.startswith("*."):
                continue
            other = host[4:] if host.startswith("www.") else f"www.{host}"
            if other not in self._taken and _NAME.fullmatch(other):
                self._taken.add(other)
                yield other, server, server.www

    def _redirecting(self, other: str, server: Server, owner: Source) -> tuple[Name, Source]:
        certificate = server.certificate
        if (
            certificate is not None
            and certificate.secret is not None
            and covers(certificate.names, other)
        ):
            self._listeners[other] = TlsListener(
                name=other,
                secret=certificate.secret,
                owner=certificate.owner.ref,
                field=certificate.field,
            )
        return Name(name=other, redirects=False, listener=self._listener_of(other)), owner


def _wildcard_above(name: str) -> str:
    first, _, parent = name.partition(".")
    return f"*.{parent}" if first != "*" else ""


def _rule_of(server: Server) -> ClientTls | None:
    """Return the rule for client certificates that a host can have."""
    client = server.client_tls
    return None if client is None or client.rule is None or server.client_wrong else client
