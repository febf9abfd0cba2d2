"""Server TLS: selects the certificate for a server name on a port, in one worker.

In: applied listeners and secrets.
Out: for each port the function that the engine calls with the server name of a ClientHello
(`ServerPort.choose`). It returns the certificates of the listener with the most specific matching
hostname. New certificates apply to new handshakes; open connections are not changed. A certificate
is loaded once, when its secret arrives (`load_secret`). A port with its own rules loads it again
for the first handshake that needs it. Protocol versions and client verification belong to the port.
Listeners resume sessions only on the port and under the rules with which they began, and never with
client certificates.
Must never: accept a name without a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from edgefast import ir
from edgefast.core import TlsContext, TlsError
from edgefast.proxy.tls.certificates import CertificateFacts, PemError, read_facts
from edgefast.proxy.tls.ticket_rule import Verification, ticket_rule

__all__ = ["ServerPort", "ServerTls", "certificate_covers", "check_secret", "load_secret"]

#: Contexts that are freed at once: 20 us each.
_RELEASE = 20
#: ALPN, best first (docs/reference/http2.md): who offers neither is refused, who offers nothing speaks HTTP/1.1.
_PROTOCOLS = ("h2", "http/1.1")
#: Seconds of a session, where clients show no certificates: of those who do none is resumed (csrc/tls/tickets.c).
_LIFETIME = 7200


def check_secret(secret: ir.Secret) -> str | None:
    """Return why a secret cannot be used, or None. Raises MemoryError for a shortage."""
    try:
        load_secret(secret)
    except TlsError as error:
        return str(error)
    return None


def load_secret(secret: ir.Secret) -> TlsContext | None:
    """Return a context with a secret's certificate, None when it has none; checks its CAs.

    Raises TlsError for a secret that cannot be used, MemoryError for a shortage.
    """
    if secret.ca:
        TlsContext(server=True).trust(secret.ca)
    if secret.crl:
        TlsContext(server=True).revoke(secret.crl)
    if not (secret.certificate and secret.private_key):
        return None
    context = TlsContext(server=True, protocols=_PROTOCOLS, lifetime=_LIFETIME)
    _add_pair(context, secret)
    return context


def _add_pair(context: TlsContext, secret: ir.Secret) -> None:
    context.add_pair(secret.certificate, secret.private_key)
    if secret.staple:
        context.staple(secret.staple, secret.staple_until)


#: A bind port, and the addresses of its listeners (empty: all).
PortKey = tuple[int, tuple[str, ...]]


class ServerTls:
    """All ports of one worker."""

    def __init__(self) -> None:
        self._ports: dict[PortKey, ServerPort] = {}
        self._replaced: list[_Certificates] = []

    def adopt(
        self,
        listeners: Iterable[ir.Listener],
        secrets: Mapping[str, ir.Secret],
        changed: frozenset[str],
        loaded: Mapping[str, TlsContext] | None = None,
    ) -> dict[PortKey, ServerPort]:
        """Serve these listeners with these secrets from the next handshake on.

        `changed` names the secrets that differ from the last call, `loaded` has what `load_secret`
        made of some of them. Returns every port's; one that is another object than before must be
        used for new connections. Loads nothing.
        """
        by_port: dict[PortKey, list[ir.Listener]] = {}
        for listener in listeners:
            if listener.tls is not None:
                by_port.setdefault((listener.bind_port, listener.addresses), []).append(listener)
        self._replaced += [one for port in self._ports.values() for one in port.certificates]
        ports: dict[PortKey, ServerPort] = {}
        for key, group in by_port.items():
            rule = _rule_of(group)
            port = self._ports.get(key)
            if port is None or port.rule != rule or not changed.isdisjoint(_authorities(group)):
                port = ServerPort(key, rule, secrets)
            port.adopt(group, secrets, changed, loaded or {})
            ports[key] = port
        self._ports = ports
        return ports

    def release(self) -> bool:
        """Let go of some of what `adopt` replaced; True when there is more, for a later turn."""
        del self._replaced[-_RELEASE:]
        return bool(self._replaced)


class _Rule(NamedTuple):
    """What belongs to a port: lowest version, CA of client certificates, whether they must verify, HTTP/2."""

    version: str
    ca: str
    insecure: bool
    http2: bool

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
        all(listener.http.http2.enabled for listener in group),
    )


def _authorities(group: list[ir.Listener]) -> Iterator[str]:
    """Give the secrets by which clients of a port are verified; with others, open connections must end."""
    for listener in group:
        if listener.tls is not None:
            rule = listener.tls.client_rule
            yield rule.ca if rule is not None else listener.tls.client_ca


class ServerPort:
    """One port; `choose` is what the engine asks."""

    def __init__(self, key: PortKey, rule: _Rule, secrets: Mapping[str, ir.Secret]) -> None:
        self.rule = rule
        bundle = secrets.get(rule.ca)
        self._ca = bundle.ca if bundle is not None else b""
        self._key = key
        self._listeners: dict[str, _Certificates] = {}  # by hostname pattern

    @property
    def certificates(self) -> Iterable[_Certificates]:
        """Those of its listeners."""
        return self._listeners.values()

    def choose(self, sni: str) -> TlsContext | None:
        """Return the context for a name in lower case, "" for none; None where no listener has it.

        Raises TlsError or MemoryError when its certificates cannot be loaded now.
        """
        certificates = self._find(sni)
        return certificates.context_for(sni) if certificates else None

    def _make_context(self, rule: ir.ClientRule | None, bundle: ir.Secret | None) -> TlsContext:
        """Make a context with the rules of the port, or of a listener about its clients."""
        protocols = _PROTOCOLS if self.rule.http2 else _PROTOCOLS[1:]
        if rule is None:
            return self._make(protocols)
        context = TlsContext(
            server=True,
            minimum=self.rule.version,
            protocols=protocols,
            verify="any",
            lifetime=_LIFETIME,
        )
        if bundle is not None and bundle.ca:  # else no certificate is verified
            context.trust(bundle.ca)
        if bundle is not None and bundle.crl:
            context.revoke(bundle.crl)
        context.bound_depth(rule.depth)
        context.authorities = (rule.ca, rule.depth)
        return context

    def _make_stream_context(self) -> TlsContext:
        """Make one for connections that are passed on: of what is spoken in them nothing is known, so nothing is agreed on."""
        return self._make(())

    def _make(self, protocols: tuple[str, ...]) -> TlsContext:
        verify = "trusted" if self.rule.verifies else "any" if self.rule.ca else ""
        context = TlsContext(
            server=True,
            minimum=self.rule.version,
            protocols=protocols,
            verify=verify,
            lifetime=_LIFETIME,
        )
        if self.rule.ca and self._ca:  # without a bundle every certificate fails: closed
            context.trust(self._ca)
        return context

    def _scope(self, hostname: str) -> bytes:
        """Return the scope of a listener's sessions."""
        rule = self.rule
        verification: Verification = (
            "required" if rule.verifies else "insecure" if rule.ca else "none"
        )
        number, addresses = self._key
        scope = "\n".join((hostname, *addresses))
        return ticket_rule(number, rule.version, verification, self._ca, scope)

    def adopt(
        self,
        group: list[ir.Listener],
        secrets: Mapping[str, ir.Secret],
        changed: frozenset[str],
        loaded: Mapping[str, TlsContext],
    ) -> None:
        plain = not self.rule.ca and self.rule.version == "1.2" and self.rule.http2
        listeners: dict[str, _Certificates] = {}
        for listener in group:
            assert listener.tls is not None
            names, client = listener.tls.certificates, listener.tls.client_rule
            known = self._listeners.get(listener.hostname)
            is_stream = listener.protocol == "TLS"
            if (
                known is None
                or known.names != names
                or known.is_stream != is_stream
                or known.client != client
                or not changed.isdisjoint(names if client is None else (*names, client.ca))
            ):
                scope = self._scope(listener.hostname)
                make = self._make_stream_context
                if not is_stream:
                    bundle = secrets.get(client.ca) if client is not None else None
                    make = partial(self._make_context, client, bundle)
                known = _Certificates(
                    names, secrets, make, scope, is_stream=is_stream, client=client
                )
                if plain and not is_stream and client is None:
                    known.take(loaded)
            listeners[listener.hostname] = known
        self._listeners = listeners

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
        make_context: Callable[[], TlsContext],
        scope: bytes,
        *,
        is_stream: bool,
        client: ir.ClientRule | None = None,
    ) -> None:
        self.names = names
        self.client = client
        self.is_stream = is_stream
        self._make_context = make_context
        self._scope = scope
        self._pairs = [
            secret
            for name in names
            if (secret := secrets.get(name)) is not None and secret.certificate
        ]
        self._facts: list[CertificateFacts] = []
        self._contexts: dict[tuple[int, ...], TlsContext] = {}
        if len(self._pairs) > 1:
            self._facts = [_facts_of(secret) for secret in self._pairs]

    def take(self, loaded: Mapping[str, TlsContext]) -> None:
        """Use the contexts that were made when the secrets came: one for each certificate."""
        for index, secret in enumerate(self._pairs):
            if (context := loaded.get(secret.name)) is not None:
                self._contexts[index,] = context.within(self._scope)

    def context_for(self, sni: str) -> TlsContext | None:
        """Return a context with the best certificate of every key kind for a server name."""
        if not self._pairs:
            return None
        chosen = self._choose(sni)
        context = self._contexts.get(chosen)
        if context is None:
            context = self._make_context()
            for index in chosen:
                secret = self._pairs[index]
                _add_pair(context, secret)
            context = self._contexts[chosen] = context.within(self._scope)
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
    except (
        PemError
    ):  # the TLS library took it (check_secret), so it is served, as a kind of its own
        return CertificateFacts(secret.name, (), 0.0, "")
