"""Upstream TLS: TLS contexts towards backends, one per CA bundle, client certificate and set of names.

In: `ir.UpstreamTls` of a cluster and the secrets it names.
Out: the context of its connections. They send `tls.sni`, and verification is on unless `tls.insecure` is set. If the
policy sets subjectAltNames (BackendTLSPolicy spec.validation.subjectAltNames), they are compared
instead of that name, after the handshake and before the first request byte.
Must never: fall back to an unverified connection; only `tls.insecure` makes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefast import ir
from edgefast.core import TlsContext, TlsError
from edgefast.proxy.process.reserved_descriptors import RESERVE, is_shortage

__all__ = ["UpstreamContexts", "UpstreamKey", "UpstreamTlsError"]

_Sans = tuple[tuple[str, str], ...]
#: CA bundle, client certificate, allowed names, protocols that are offered, whether no certificate is verified, depth.
UpstreamKey = tuple[str, str, _Sans, tuple[str, ...], bool, int]


class UpstreamTlsError(ValueError):
    """A backend's TLS settings cannot be used; no connection may be made without them."""


class UpstreamContexts:
    """Callable: the engine's `upstream_tls`."""

    def __init__(self, secrets: Mapping[str, ir.Secret]) -> None:
        self._secrets = secrets
        self._contexts: dict[UpstreamKey, TlsContext] = {}
        #: Whether a context could not be made for want of memory, since `adopt`.
        self.short = False

    def __call__(
        self, tls: ir.UpstreamTls, protocols: tuple[str, ...] = ("http/1.1",)
    ) -> TlsContext:
        """Return the context for a cluster that offers these protocols (ALPN), the best one first.

        Raises UpstreamTlsError when a secret is missing or unusable, MemoryError for a shortage.
        """
        key = (tls.ca, tls.certificate, tls.sans, protocols, tls.insecure, tls.depth)
        context = self._contexts.get(key)
        if context is None:
            try:
                context = self._contexts[key] = _make(key, self._secrets)
            except (OSError, MemoryError) as error:
                self.short |= is_shortage(error)
                raise
        return context

    def renew(
        self, secrets: Mapping[str, ir.Secret], changed: frozenset[str]
    ) -> Iterator[tuple[UpstreamKey, TlsContext]]:
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
        renewed: Mapping[UpstreamKey, TlsContext] | None = None,
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


def _make(key: UpstreamKey, secrets: Mapping[str, ir.Secret]) -> TlsContext:
    ca, certificate, sans, protocols, insecure, depth = key
    if insecure:
        context = TlsContext(server=False, protocols=protocols, verify="any")
    else:
        context = TlsContext(server=False, sans=sans, protocols=protocols)
    try:
        if insecure:
            pass
        elif ca:
            context.trust(_secret(secrets, ca).ca)
        else:
            with RESERVE.lent():  # what cannot be opened is left out without a word
                context.trust_system()
        if depth:
            context.bound_depth(depth - 1)
        if certificate:
            pair = _secret(secrets, certificate)
            context.add_pair(pair.certificate, pair.private_key)
    except TlsError as error:
        raise UpstreamTlsError(str(error)) from None
    return context


def _secret(secrets: Mapping[str, ir.Secret], name: str) -> ir.Secret:
    try:
        return secrets[name]
    except KeyError:
        raise UpstreamTlsError(f"{name} not found") from None
