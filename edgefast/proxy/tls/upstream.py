"""TLS towards backends: one SSLContext per CA bundle, client certificate and set of names.

In: `ir.UpstreamTls` of a cluster and the secrets it names. Out: a context for `create_connection`
with `server_hostname=tls.sni`; verification is always on. When the policy gives subjectAltNames
(BackendTLSPolicy spec.validation.subjectAltNames), they are compared instead of the hostname, after
the handshake and before a request byte. Must never fall back to an unverified connection.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping

from edgefast import ir
from edgefast.proxy.process.reserve import RESERVE, is_shortage
from edgefast.proxy.tls.certificates import PemError, load_ca, load_pair
from edgefast.proxy.tls.server import certificate_covers

__all__ = ["UpstreamContexts", "UpstreamKey", "UpstreamTlsError"]

_Sans = tuple[tuple[str, str], ...]
#: CA bundle, client certificate, allowed names.
UpstreamKey = tuple[str, str, _Sans]


class UpstreamTlsError(ValueError):
    """A backend's TLS settings cannot be used; no connection may be made without them."""


class UpstreamContexts:
    """Callable: the engine's `upstream_ssl`."""

    def __init__(self, secrets: Mapping[str, ir.Secret]) -> None:
        self._secrets = secrets
        self._contexts: dict[UpstreamKey, ssl.SSLContext] = {}
        #: Whether a context could not be made for want of descriptors, since `adopt`.
        self.short = False

    def __call__(self, tls: ir.UpstreamTls) -> ssl.SSLContext:
        """Return the context for a cluster; call it for every new connection, it is a look-up.

        Raises UpstreamTlsError when a secret is missing or unusable, OSError for a shortage.
        """
        key = (tls.ca, tls.certificate, tls.sans)
        context = self._contexts.get(key)
        if context is None:
            try:
                context = self._contexts[key] = _make(key, self._secrets)
            except OSError as error:
                self.short |= is_shortage(error)
                raise
        return context

    def renew(
        self, secrets: Mapping[str, ir.Secret], changed: frozenset[str]
    ) -> Iterator[tuple[UpstreamKey, ssl.SSLContext]]:
        """Make what is in use and depends on changed secrets anew, one a step, for `adopt`."""
        for key in [key for key in self._contexts if key[0] in changed or key[1] in changed]:
            try:
                yield key, _make(key, secrets)
            except UpstreamTlsError:
                continue  # said to whoever asks for it

    def adopt(
        self,
        secrets: Mapping[str, ir.Secret],
        changed: frozenset[str],
        renewed: Mapping[UpstreamKey, ssl.SSLContext] | None = None,
    ) -> None:
        """Use these secrets from the next connection on."""
        self._secrets = secrets
        self.short = False
        unchanged = {
            key: context
            for key, context in self._contexts.items()
            if key[0] not in changed and key[1] not in changed
        }
        self._contexts = {**unchanged, **(renewed or {})}


def _make(key: UpstreamKey, secrets: Mapping[str, ir.Secret]) -> ssl.SSLContext:
    ca, certificate, sans = key
    context = _SanContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if sans:
        context.check_hostname = False
        context.sans = sans
    try:
        if ca:
            load_ca(context, _secret(secrets, ca).ca)
        else:
            with RESERVE.lent():  # what cannot be opened is left out without a word
                context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if certificate:
            pair = _secret(secrets, certificate)
            load_pair(context, pair.certificate, pair.private_key)
    except PemError as error:
        raise UpstreamTlsError(str(error)) from None
    return context


def _secret(secrets: Mapping[str, ir.Secret], name: str) -> ir.Secret:
    try:
        return secrets[name]
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
