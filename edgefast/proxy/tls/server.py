"""TLS towards clients: which certificate answers which server name on which port, in one worker.

In: applied listeners and secrets. Out: one SSLContext per port for `create_server`; its callback
picks the certificates of the listener that the SNI belongs to (most specific hostname first) and
leaves the name on the SSLObject for the engine's 421 check. New certificates serve new handshakes;
nothing open is touched. A certificate is loaded once, when its secret comes (`load_secret`); a port
with rules of its own loads it again with the first handshake that needs it. Protocol versions and client verification belong to the port, because a
context switched to in the callback cannot change them. Must never let a name without listener in.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from edgefast import ir
from edgefast.proxy.tls.certificates import (
    CertificateFacts,
    PemError,
    load_ca,
    load_pair,
    read_facts,
)
from edgefast.proxy.tls.insecurefallback import accept_any_client

__all__ = ["ServerTls", "certificate_covers", "check_secret", "load_secret"]

log = logging.getLogger(__name__)

#: Contexts that are freed at once: 20 us each.
_RELEASE = 20
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def check_secret(secret: ir.Secret) -> str | None:
    """Return why a secret cannot be used, or None. Raises OSError for a shortage."""
    try:
        load_secret(secret)
    except PemError as error:
        return str(error)
    return None


def load_secret(secret: ir.Secret) -> ssl.SSLContext | None:
    """Return a context with a secret's certificate, None when it has none; checks its CAs.

    Raises PemError for a secret that cannot be used, OSError for a shortage.
    """
    if secret.ca:
        load_ca(_server_context(), secret.ca)
    if not (secret.certificate and secret.private_key):
        return None
    context = _server_context()
    load_pair(context, secret.certificate, secret.private_key)
    return context


class ServerTls:
    """All ports of one worker."""

    def __init__(self) -> None:
        self._ports: dict[int, _Port] = {}
        self._replaced: list[_Certificates] = []

    def adopt(
        self,
        listeners: Iterable[ir.Listener],
        secrets: Mapping[str, ir.Secret],
        changed: frozenset[str],
        loaded: Mapping[str, ssl.SSLContext] | None = None,
    ) -> dict[int, ssl.SSLContext]:
        """Serve these listeners with these secrets from the next handshake on.

        `changed` names the secrets that differ from the last call, `loaded` has what `load_secret`
        made of some of them. Returns the context of every port; one that is another object than
        before must be used for new connections. Loads nothing but CA bundles.
        """
        by_port: dict[int, list[ir.Listener]] = {}
        for listener in listeners:
            if listener.tls is not None:
                by_port.setdefault(listener.bind_port, []).append(listener)
        self._replaced += [one for port in self._ports.values() for one in port.certificates]
        ports: dict[int, _Port] = {}
        for number, group in by_port.items():
            rule = _rule_of(group)
            port = self._ports.get(number)
            if port is None or port.rule != rule or rule.ca in changed:
                port = _Port(rule, secrets)
            port.adopt(group, secrets, changed, loaded or {})
            ports[number] = port
        self._ports = ports
        return {number: port.context for number, port in ports.items()}

    def release(self) -> bool:
        """Let go of some of what `adopt` replaced; True when there is more, for a later turn."""
        del self._replaced[-_RELEASE:]
        return bool(self._replaced)


class _Rule(NamedTuple):
    """What belongs to a port: lowest version, CA of client certificates, whether they must verify."""

    version: str
    ca: str
    insecure: bool

    @property
    def verifies(self) -> bool:
        """Whether clients need a certificate that verifies."""
        return bool(self.ca) and not self.insecure


def _rule_of(group: list[ir.Listener]) -> _Rule:
    """Join the port's settings; they are equal on all listeners, and the stricter wins if not."""
    settings = [listener.tls for listener in group if listener.tls is not None]
    strict = [one for one in settings if one.client_ca and not one.client_insecure_fallback]
    asking = strict or [one for one in settings if one.client_ca]
    return _Rule(
        max(one.min_version for one in settings),
        asking[0].client_ca if asking else "",
        bool(asking) and not strict,
    )


class _Port:
    def __init__(self, rule: _Rule, secrets: Mapping[str, ir.Secret]) -> None:
        self.rule = rule
        bundle = secrets.get(rule.ca)
        self._ca = bundle.ca if bundle is not None else b""
        self._listeners: dict[str, _Certificates] = {}  # by hostname pattern
        self.context = self._make_context()
        self.context.sni_callback = self._on_server_name

    @property
    def certificates(self) -> Iterable[_Certificates]:
        """Those of its listeners."""
        return self._listeners.values()

    def _make_context(self) -> ssl.SSLContext:
        """Make a context with the port's rules.

        OpenSSL takes version and verification mode from the context that the handshake began with,
        the certificates it trusts from the one switched to: all of a port carry the same rules.
        """
        context = _server_context()
        context.minimum_version = _VERSIONS[self.rule.version]
        if self.rule.verifies:
            context.verify_mode = ssl.CERT_REQUIRED
            if self._ca:  # without a bundle every client certificate fails: closed
                load_ca(context, self._ca)
        elif self.rule.ca:  # AllowInsecureFallback: asked for, and whatever comes is let in
            accept_any_client(context)
        return context

    def adopt(
        self,
        group: list[ir.Listener],
        secrets: Mapping[str, ir.Secret],
        changed: frozenset[str],
        loaded: Mapping[str, ssl.SSLContext],
    ) -> None:
        plain = not self.rule.verifies and self.rule.version == "1.2"
        listeners: dict[str, _Certificates] = {}
        for listener in group:
            assert listener.tls is not None
            names = listener.tls.certificates
            known = self._listeners.get(listener.hostname)
            if known is None or known.names != names or not changed.isdisjoint(names):
                known = _Certificates(names, secrets, self._make_context)
                if plain:
                    known.take(loaded)
            listeners[listener.hostname] = known
        self._listeners = listeners

    def _on_server_name(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
    ) -> int | None:
        """Choose certificates; without a listener for the name the handshake ends."""
        sni = (name or "").lower()
        vars(connection)["sni"] = sni  # read by the engine: 421 when Host belongs elsewhere
        certificates = self._find(sni)
        try:
            context = certificates.context_for(sni) if certificates else None
        except (OSError, PemError) as error:
            log.error("no certificate can be loaded now: %s", error)
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        if context is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = context
        return None

    def _find(self, sni: str) -> _Certificates | None:
        """Return the most specific listener's: the name, ever shorter wildcards, then any."""
        found = self._listeners.get(sni) if sni else None
        rest = sni
        while found is None and "." in rest:
            rest = rest.partition(".")[2]
            found = self._listeners.get(f"*.{rest}")
        return found or self._listeners.get("*")


class _Certificates:
    """The certificates of one listener: one context, or one per choice when names differ."""

    def __init__(
        self,
        names: tuple[str, ...],
        secrets: Mapping[str, ir.Secret],
        make_context: Callable[[], ssl.SSLContext],
    ) -> None:
        self.names = names
        self._make_context = make_context
        self._pairs = [
            secret
            for name in names
            if (secret := secrets.get(name)) is not None and secret.certificate
        ]
        self._facts: list[CertificateFacts] = []
        self._contexts: dict[tuple[int, ...], ssl.SSLContext] = {}
        if len(self._pairs) > 1:
            self._facts = [_facts_of(secret) for secret in self._pairs]

    def take(self, loaded: Mapping[str, ssl.SSLContext]) -> None:
        """Use the contexts that were made when the secrets came: one for each certificate."""
        for index, secret in enumerate(self._pairs):
            if (context := loaded.get(secret.name)) is not None:
                self._contexts[index,] = context

    def context_for(self, sni: str) -> ssl.SSLContext | None:
        """Return a context with the best certificate of every key kind for a server name."""
        if not self._pairs:
            return None
        chosen = self._choose(sni)
        context = self._contexts.get(chosen)
        if context is None:
            context = self._make_context()
            for index in chosen:
                secret = self._pairs[index]
                load_pair(context, secret.certificate, secret.private_key)
            self._contexts[chosen] = context
        return context

    def _choose(self, sni: str) -> tuple[int, ...]:
        """Per key kind: the first certificate that covers the name, else the first one."""
        if not self._facts:
            return (0,)
        best: dict[str, int] = {}
        covered: set[str] = set()
        for index, facts in enumerate(self._facts):
            if facts.kind not in covered and certificate_covers(facts.names, sni):
                covered.add(facts.kind)
                best[facts.kind] = index
            else:
                best.setdefault(facts.kind, index)
        # A kind whose certificate does not cover the name must not win over one that does.
        return tuple(sorted(best[kind] for kind in (covered or best)))


def certificate_covers(names: Iterable[str], hostname: str) -> bool:
    """Tell whether a certificate's DNS names include a hostname (RFC 6125 6.4: whole first label)."""
    parent = hostname.partition(".")[2]
    return any(name == hostname or (parent and name == f"*.{parent}") for name in names)


def _facts_of(secret: ir.Secret) -> CertificateFacts:
    try:
        return read_facts(secret.certificate)
    except PemError:  # OpenSSL took it (check_secret), so it is served, as a kind of its own
        return CertificateFacts(secret.name, (), 0.0, "")


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context
