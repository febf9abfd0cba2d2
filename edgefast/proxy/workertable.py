"""WorkerTable: one swap of one worker, from a list of changes to engine, TLS and ports.

In: changes with places in the arena. Out: refusals, and how each port is now to be served.
Secrets stay here (the engine never sees one); everything else goes to `Engine.apply` in one call.
A refused resource leaves its old version in use. Must never raise for a bad resource, and never
keep a view into the arena longer than `apply` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from edgefast import ir
from edgefast.proxy.acceptors import PortUse
from edgefast.proxy.messages import Change
from edgefast.proxy.tls import ServerTls, check_secret
from edgefast.proxy.upstreamtls import UpstreamContexts

__all__ = ["Appliance", "WorkerTable"]

Refused = tuple[str, str, str]
_Plain = tuple[str, str, str, int, int]

_SECRET: msgspec.msgpack.Decoder[ir.Secret] = msgspec.msgpack.Decoder(ir.Secret)
_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)
_TLS_FIELD = msgspec.msgpack.encode("tls")
_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)


class Appliance(Protocol):
    """The part of `Engine` that takes tables."""

    def apply(self, changes: Sequence[_Plain], version: str) -> list[Refused]:
        """Swap between two requests; return the resources that were refused, with the reason."""
        ...


class WorkerTable:
    """See the module's text."""

    def __init__(self, arena: memoryview) -> None:
        self._arena = arena
        self._secrets: dict[str, ir.Secret] = {}
        self._listeners: dict[str, ir.Listener] = {}
        self._server_tls = ServerTls()
        self._tls_clusters: dict[str, tuple[Change, ir.UpstreamTls]] = {}
        self.upstream_ssl = UpstreamContexts(self._secrets)
        self.uses: dict[int, PortUse] = {}

    def apply(self, engine: Appliance, changes: Sequence[Change], version: str) -> list[Refused]:
        """Take one commit; `uses` says afterwards which bind ports are served, and how."""
        refused: list[Refused] = []
        changed = self._take_secrets(changes, refused)
        self.upstream_ssl.adopt(self._secrets, changed)
        refused += self._refuse_listeners(changes)
        held = {name for type_, name, _ in refused if type_ == "listener"}
        forward = [
            (change.op, change.type, change.name, change.offset, change.length)
            for change in changes
            if change.type != "secret" and not (change.type == "listener" and change.name in held)
        ]
        self._note_clusters(changes)
        # An engine asks for a cluster's TLS context when it takes the cluster, so new key material
        # means taking it again. What is refused here keeps its old context and was not sent now.
        again = self._clusters_of(changed, {change.name for change in changes})
        refused += [
            one for one in engine.apply([*again, *forward], version) if not _among(one, again)
        ]
        held = {name for type_, name, _ in refused if type_ == "listener"}
        moved = self._take_listeners(changes, held)
        if moved or changed:
            self._serve(changed)
        return refused

    def _take_secrets(self, changes: Sequence[Change], refused: list[Refused]) -> frozenset[str]:
        secrets = dict(self._secrets)
        changed: set[str] = set()
        for change in changes:
            if change.type != "secret":
                continue
            if change.op == "del":
                secrets.pop(change.name, None)
            else:
                secret = _SECRET.decode(self._slice(change))
                error = check_secret(secret)
                if error is not None:
                    refused.append(("secret", change.name, error))
                    continue
                secrets[change.name] = secret
            changed.add(change.name)
        self._secrets = secrets
        return frozenset(changed)

    def _refuse_listeners(self, changes: Sequence[Change]) -> list[Refused]:
        """Refuse what nobody here can serve as it is meant.

        A PROXY protocol preamble comes before the TLS handshake. Read inside of it, as the engine
        would, it would let any client choose its own address.
        """
        refused = []
        for change in changes:
            if change.type != "listener" or change.op == "del":
                continue
            one = _LISTENER.decode(self._slice(change))
            if one.tls is not None and one.http.client_address.proxy_protocol != "off":
                why = "clientAddress.proxyProtocol is not available yet on HTTPS listeners"
                refused.append(("listener", change.name, why))
        return refused

    def _note_clusters(self, changes: Sequence[Change]) -> None:
        """Remember the clusters that speak TLS; the others are not even decoded."""
        for change in changes:
            if change.type != "cluster":
                continue
            self._tls_clusters.pop(change.name, None)
            if change.op == "put" and _TLS_FIELD in (data := self._slice(change)):
                tls = _CLUSTER.decode(data).tls
                if tls is not None:
                    self._tls_clusters[change.name] = (change, tls)

    def _clusters_of(self, secrets: frozenset[str], sent: set[str]) -> list[_Plain]:
        return [
            (change.op, change.type, change.name, change.offset, change.length)
            for name, (change, tls) in self._tls_clusters.items()
            if name not in sent and (tls.ca in secrets or tls.certificate in secrets)
        ]

    def _take_listeners(self, changes: Sequence[Change], held: set[str]) -> bool:
        moved = False
        for change in changes:
            if change.type != "listener" or change.name in held:
                continue
            moved = True
            if change.op == "del":
                self._listeners.pop(change.name, None)
            else:
                self._listeners[change.name] = _LISTENER.decode(self._slice(change))
        return moved

    def _serve(self, changed: frozenset[str]) -> None:
        listeners = [self._listeners[name] for name in sorted(self._listeners)]
        contexts = self._server_tls.adopt(listeners, self._secrets, changed)
        self.uses = {
            one.bind_port: PortUse(one.port, contexts.get(one.bind_port)) for one in listeners
        }

    def _slice(self, change: Change) -> bytes:
        return bytes(self._arena[change.offset : change.offset + change.length])


def _among(refused: Refused, changes: Sequence[_Plain]) -> bool:
    return any(refused[:2] == change[1:3] for change in changes)
