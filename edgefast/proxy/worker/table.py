"""WorkerTable: one swap of one worker, from a list of changes to engine, TLS and ports.

In: changes with blocks in the arena.
Out: refusals, and the new use of each port. Secrets stay here (the engine never sees one);
everything else goes to `Engine.apply` in one call. A refused resource leaves its old version in
use. Certificates are loaded one by one, with a pause for requests between two; the swap itself is
one step of the loop.
Must never: raise for an invalid resource, or keep a block in the arena that is not applied.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from edgefast import ir
from edgefast.core import TlsContext
from edgefast.proxy.control.messages import Change
from edgefast.proxy.tls.server import ServerTls, load_secret
from edgefast.proxy.tls.upstream import UpstreamContexts, UpstreamKey
from edgefast.proxy.worker.acceptors import BindKey, PortUse
from edgefast.proxy.worker.libraries import load_libraries

__all__ = ["Appliance", "WorkerTable"]

log = logging.getLogger(__name__)

Refused = tuple[str, str, str]
_Plain = tuple[str, str, str, int, int]

_SECRET: msgspec.msgpack.Decoder[ir.Secret] = msgspec.msgpack.Decoder(ir.Secret)
_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)
_TLS_FIELD = msgspec.msgpack.encode("tls")
_LIMIT_STORE: msgspec.msgpack.Decoder[ir.RateLimitStore] = msgspec.msgpack.Decoder(
    ir.RateLimitStore
)
_PROXIES: msgspec.msgpack.Decoder[ir.Proxies] = msgspec.msgpack.Decoder(ir.Proxies)
_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)


class Appliance(Protocol):
    """The part of `Engine` that takes tables."""

    def apply(self, changes: Sequence[_Plain], version: str) -> list[Refused]:
        """Swap between two requests; return the resources that were refused, with the reason."""
        ...


class _Material(NamedTuple):
    """The secrets of a commit, checked."""

    secrets: dict[str, ir.Secret]
    changed: frozenset[str]
    refused: list[Refused]
    loaded: Mapping[str, TlsContext]  # of new certificates


async def _next_turn() -> None:
    await asyncio.sleep(0)


class WorkerTable:
    """Applies a list of changes to a worker's engine, TLS contexts and ports."""

    def __init__(self, arena: memoryview) -> None:
        self._arena = arena
        self._secrets: dict[str, ir.Secret] = {}
        self._listeners: dict[str, ir.Listener] = {}
        self._server_tls = ServerTls()
        self._tls_clusters: dict[str, tuple[Change, ir.UpstreamTls]] = {}
        self.upstream_tls = UpstreamContexts(self._secrets)
        self.uses: dict[BindKey, PortUse] = {}
        self.datagrams: dict[BindKey, PortUse] = {}  # of UDP
        self.adopt_limit_store: Callable[[ir.RateLimitStore | None], None] = lambda _: None
        self.adopt_proxies: Callable[[ir.Proxies | None], None] = lambda _: None
        #: Told of `uses` and `datagrams` in the turn of the swap: nobody comes in under a rule that is no more.
        self.retire: Callable[[Mapping[BindKey, PortUse], Mapping[BindKey, PortUse]], None] = (
            lambda *_: None
        )
        #: Whether the last commit refused something for want of descriptors or memory.
        self.short = False

    async def apply(
        self,
        engine: Appliance,
        changes: Sequence[Change],
        version: str,
        rest: Callable[[], Awaitable[None]] = _next_turn,
    ) -> list[Refused]:
        """Take one commit; `uses` says afterwards which bind ports are served, and how.

        `rest` is awaited after every piece of work that takes its time, before the swap.
        """
        self.short = False
        await load_libraries(
            self._slice(one) for one in changes if one.type == "policy" and one.op == "put"
        )
        material = await self._load_secrets(changes, rest)
        renewed = {}
        try:
            for key, context in self.upstream_tls.renew(material.secrets, material.changed):
                renewed[key] = context
                await rest()
        except MemoryError:  # what is missing is made when the engine asks
            self.short = True
        refused = self._swap(engine, changes, version, material, renewed)
        while self._server_tls.release():
            await rest()
        return refused

    def _swap(
        self,
        engine: Appliance,
        changes: Sequence[Change],
        version: str,
        material: _Material,
        renewed: Mapping[UpstreamKey, TlsContext],
    ) -> list[Refused]:
        self._secrets = material.secrets
        self.upstream_tls.adopt(material.secrets, material.changed, renewed)
        forward = [
            (change.op, change.type, change.name, change.offset, change.length)
            for change in changes
            if change.type not in ("secret", "limit_store", "proxies")
        ]
        refused = [
            *material.refused,
            *self._take_limit_store(changes),
            *self._take_proxies(changes),
        ]
        # An engine asks for a cluster's TLS context when it takes the cluster, so new key material
        # means taking it again. What is refused here keeps its old context and was not sent now.
        again = self._clusters_of(material.changed, {change.name for change in changes})
        for one in engine.apply([*again, *forward], version):
            if _among(one, again):
                log.error("cluster %s keeps its old TLS settings: %s", one[1], one[2])
            else:
                refused.append(one)
        self.short |= self.upstream_tls.short
        self._note_clusters(changes, {name for type_, name, _ in refused if type_ == "cluster"})
        held = {name for type_, name, _ in refused if type_ == "listener"}
        if self._take_listeners(changes, held) or material.changed:
            self._serve(material)
            self.retire(self.uses, self.datagrams)
        return refused

    async def _load_secrets(
        self, changes: Sequence[Change], rest: Callable[[], Awaitable[None]]
    ) -> _Material:
        secrets = dict(self._secrets)
        changed: set[str] = set()
        refused: list[Refused] = []
        loaded: dict[str, TlsContext] = {}
        for change in changes:
            if change.type != "secret":
                continue
            if change.op == "del":
                secrets.pop(change.name, None)
                changed.add(change.name)
                continue
            try:
                secret = _SECRET.decode(self._slice(change))
                context = load_secret(secret)
            except ValueError as error:
                refused.append(("secret", change.name, str(error)))
            except MemoryError:
                self.short = True
                refused.append(("secret", change.name, "cannot be loaded now: out of memory"))
            else:
                secrets[change.name] = secret
                changed.add(change.name)
                if context is not None:
                    loaded[change.name] = context
            await rest()
        return _Material(secrets, frozenset(changed), refused, loaded)

    def _take_limit_store(self, changes: Sequence[Change]) -> list[Refused]:
        for change in changes:
            if change.type == "limit_store":
                put = change.op == "put"
                try:
                    store = _LIMIT_STORE.decode(self._slice(change)) if put else None
                except ValueError as error:
                    return [("limit_store", change.name, str(error))]
                self.adopt_limit_store(store)  # in the turn in which rules begin to ask it
        return []

    def _take_proxies(self, changes: Sequence[Change]) -> list[Refused]:
        for change in changes:
            if change.type == "proxies":
                put = change.op == "put"
                try:
                    self.adopt_proxies(_PROXIES.decode(self._slice(change)) if put else None)
                except ValueError as error:
                    return [("proxies", change.name, str(error))]
        return []

    def _note_clusters(self, changes: Sequence[Change], refused: set[str]) -> None:
        """Remember the clusters that speak TLS; the others are not even decoded.

        A refused one is not remembered: its place in the arena will be another's, and the version
        before it is still what the engine has.
        """
        for change in changes:
            if change.type != "cluster" or change.name in refused:
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

    def _serve(self, material: _Material) -> None:
        listeners = [self._listeners[name] for name in sorted(self._listeners)]
        ports = self._server_tls.adopt(listeners, self._secrets, material.changed, material.loaded)
        uses: dict[BindKey, PortUse] = {}
        datagrams: dict[BindKey, PortUse] = {}
        for one in listeners:  # settings belong to the port; the engine, too, takes the first's
            keys = [(one.bind_port, host) for host in one.addresses or ("",)]
            if one.protocol == "UDP":
                use = PortUse(one.port, None, "UDP", one.addresses)
                datagrams.update((key, use) for key in keys if key not in datagrams)
                continue
            if keys[0] in uses:
                continue
            port = ports.get((one.bind_port, one.addresses))
            choose = port.choose if port is not None else None
            if one.protocol == "TLS" and choose is None:  # no listener of the port terminates it
                choose = _choose_nothing
            stream: ir.Transport | None = "TCP" if one.protocol == "TCP" else None
            use = PortUse(one.port, choose, stream, one.addresses)
            uses.update((key, use) for key in keys)
        self.uses, self.datagrams = uses, datagrams

    def _slice(self, change: Change) -> bytes:
        return bytes(self._arena[change.offset : change.offset + change.length])


def _choose_nothing(sni: str) -> TlsContext | None:
    return None


def _among(refused: Refused, changes: Sequence[_Plain]) -> bool:
    return any(refused[:2] == change[1:3] for change in changes)
