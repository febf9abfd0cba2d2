"""Findings: what the locations of a host have in common: access rules, made objects, notes.

In: Servers, the settings, a Lookup. Out: targets of upstreams, and what rules.py found on the way: Backends to make, ports of Services
that get TLS, notes for each Ingress.
Must never: keep the same note of an Ingress twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgefast.api.edge.backend import Backend
from edgefast.translate.ingress.access import Access
from edgefast.translate.ingress.auth_url import AuthCheck
from edgefast.translate.ingress.backend_tls import BackendTls
from edgefast.translate.ingress.backends import ServicePortKey, Target, TlsUse, find_target
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.error_pages import find_default_backend
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.servers import Servers, Source, Upstream

__all__ = ["Findings"]


class Findings:
    """What the locations of a host have in common: access rules, made objects, notes."""

    def __init__(
        self,
        servers: Servers,
        settings: Globals,
        lookup: Lookup,
        ports: tuple[int, int],
        find_access: Callable[[Source], Access],
        speaks_tls: Mapping[ServicePortKey, TlsUse],
    ) -> None:
        """`speaks_tls`: of `backends.find_encrypted`."""
        self.servers = servers
        self.settings = settings
        self.lookup = lookup
        self.ports = ports
        self._find_access = find_access
        #: Checks of this host, by Ingress; other hosts of the Ingress have others.
        self.checks: dict[Source, AuthCheck] = {}
        self.backends: dict[str, Backend] = {}
        #: Ports of Services that get TLS, with their names and the settings of an Ingress.
        self.encrypted: dict[ServicePortKey, tuple[str, BackendTls | None]] = {}
        self._speaks_tls = speaks_tls
        #: By Ingress: notes about an annotation, or about a field (with a dot or bracket in its name).
        self.notes: dict[Source, dict[Note, None]] = {}

    def access_of(self, source: Source) -> Access:
        """Return the access rules of an Ingress for this host."""
        access = self._find_access(source)
        if access.of_host:
            self.note(source, *access.notes)
            if access.check is not None:
                self.checks[source] = access.check
        return access

    def note(self, source: Source | None, *notes: Note) -> None:
        """Note problems of an Ingress, each once."""
        if source is not None:
            self.notes.setdefault(source, {}).update(dict.fromkeys(notes))

    def target_of(self, upstream: Upstream, source: Source) -> Target:
        """Return where requests to an upstream go."""
        annotations = source.annotations
        found = find_target(
            upstream,
            annotations.protocol,
            self.lookup,
            service_upstream=annotations.service_upstream,
            speaks_tls=self._speaks_tls,
            verifies=annotations.verifies_backend,
            backend_tls=annotations.backend_tls,
        )
        verified = found.settings is not None and found.settings.verifies
        if not verified and (
            found.tls is not None or (found.backend is not None and found.backend.spec.tls)
        ):
            message = "the certificate of the backend is not verified, as in ingress-nginx; write a BackendTLSPolicy for its Service"
            self.note(source, Note(name="backend-protocol", message=message))
        if annotations.backend_tls and found.port and self.lookup.has_tls_policy(upstream.key):
            message = "no effect: the BackendTLSPolicy of the Service decides"
            self.note(source, Note(name="proxy-ssl-secret", message=message))
        if found.tls is not None:
            self.encrypted[*upstream.key, found.tls.port] = (found.tls.name, found.settings)
        if found.backend is not None:
            self.add_backend(found.backend)
        return found

    def default_backend_of(self, source: Source) -> Target | None:
        """Return the target of default-backend; None without endpoints."""
        found, notes = find_default_backend(source.annotations.pages, source.namespace, self.lookup)
        self.note(source, *notes)
        if found is not None and found.backend is not None:
            self.add_backend(found.backend)
        return found

    def add_backend(self, backend: Backend) -> None:
        """Keep a Backend that a rule refers to."""
        meta = backend.metadata
        self.backends[f"{meta.namespace}/{meta.name}"] = backend
