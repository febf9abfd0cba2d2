"""TLS towards backends: one SSLContext per CA bundle, client certificate and set of names.

In: `ir.UpstreamTls` of a cluster and the secrets it names. Out: a context for `create_connection`
with `server_hostname=tls.sni`; verification is always on. When the policy gives subjectAltNames
(BackendTLSPolicy spec.validation.subjectAltNames), they are compared instead of the hostname, after
the handshake and before a request byte. Must never fall back to an unverified connection.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from edgefast import ir
from edgefast.proxy.certificates import PemError, load_ca, load_pair
from edgefast.proxy.tls import certificate_covers

__all__ = ["UpstreamContexts", "UpstreamTlsError"]

_Sans = tuple[tuple[str, str], ...]


class UpstreamTlsError(ValueError):
    """A backend's TLS settings cannot be used; no connection may be made without them."""


class UpstreamContexts:
    """Callable: the engine's `upstream_ssl`."""

    def __init__(self, secrets: Mapping[str, ir.Secret]) -> None:
        self._secrets = secrets
        self._contexts: dict[tuple[str, str, _Sans], ssl.SSLContext] = {}

    def __call__(self, tls: ir.UpstreamTls) -> ssl.SSLContext:
        """Return the context for a cluster; call it for every new connection, it is a look-up.

        Raises UpstreamTlsError when a secret is missing or unusable.
        """
        key = (tls.ca, tls.certificate, tls.sans)
        context = self._contexts.get(key)
        if context is None:
            context = self._contexts[key] = self._make(tls)
        return context

    def adopt(self, secrets: Mapping[str, ir.Secret], changed: frozenset[str]) -> None:
        """Use these secrets from the next connection on."""
        self._secrets = secrets
        self._contexts = {
            key: context
            for key, context in self._contexts.items()
            if key[0] not in changed and key[1] not in changed
        }

    def _make(self, tls: ir.UpstreamTls) -> ssl.SSLContext:
        context = _SanContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if tls.sans:
            context.check_hostname = False
            context.sans = tls.sans
        try:
            if tls.ca:
                load_ca(context, self._secret(tls.ca).ca)
            else:
                context.load_default_certs(ssl.Purpose.SERVER_AUTH)
            if tls.certificate:
                pair = self._secret(tls.certificate)
                load_pair(context, pair.certificate, pair.private_key)
        except PemError as error:
            raise UpstreamTlsError(str(error)) from None
        return context

    def _secret(self, name: str) -> ir.Secret:
        try:
            return self._secrets[name]
        except KeyError:
            raise UpstreamTlsError(f"{name} is not there") from None


class _SanObject(ssl.SSLObject):
    """Ends the handshake when no subjectAltName of the peer is among the context's."""

    def do_handshake(self) -> None:
        super().do_handshake()
        context = self.context
        if isinstance(context, _SanContext) and context.sans:
            _check_sans(self.getpeercert() or {}, context.sans)


class _SanContext(ssl.SSLContext):
    sslobject_class = _SanObject
    sans: _Sans = ()


def _check_sans(certificate: Mapping[str, object], wanted: _Sans) -> None:
    """Raise SSLCertVerificationError unless one wanted name is in the certificate."""
    present = certificate.get("subjectAltName", ())
    assert isinstance(present, tuple)
    dns = [value.lower() for kind, value in present if kind == "DNS"]
    uris = {value for kind, value in present if kind == "URI"}
    for kind, value in wanted:
        if kind == "Hostname" and certificate_covers(dns, value.lower()):
            return
        if kind == "URI" and value in uris:
            return
    raise ssl.SSLCertVerificationError("no subjectAltName of the backend is among those allowed")
