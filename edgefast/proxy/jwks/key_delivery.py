"""KeyDelivery: the key sets that the table refers to, and their delivery to the workers.

In: the changes of each table, from the worker tables; the workers' reports of tokens with an
unknown key.
Out: for each source (uri, cluster, issuer) keys in the format of edgefast/auth/jwt/key_set.py, or b"" for no
keys. Keys are separate from tables: an issuer never delays a table, and new keys are not a new
version. Level-triggered: a worker gets every difference to its last delivery, and an answer to
every report, with or without changes. A KeySource keeps each source fresh; a table without sources
loads none of this code.
Must never: delay a table.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.diagnostics.redact import show_query
from edgefast.ir.credentials import RemoteKeys
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import Key, Placed

if TYPE_CHECKING:
    from edgefast.auth.oidc.provider_metadata import ProviderMetadata
    from edgefast.proxy.jwks.key_source import KeySource, SourceContext

__all__ = ["SOURCES", "KeyDelivery", "PublishedKeys"]

#: Sources of a table that are fetched.
SOURCES = 256

_POLICY: msgspec.msgpack.Decoder[ir.PolicyUnit] = msgspec.msgpack.Decoder(ir.PolicyUnit)
_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)
_SECRET: msgspec.msgpack.Decoder[ir.Secret] = msgspec.msgpack.Decoder(ir.Secret)
_MARK = msgspec.msgpack.encode("remote")  # the name of JwtProvider's field
_T = TypeVar("_T")
_Source = tuple[str, str, str]
_Asked = tuple[str, RemoteKeys]  # the provider's name


class PublishedKeys(NamedTuple):
    """What workers are told of a source; another `serial` is told anew."""

    serial: int
    data: bytes  # b"": no keys


class KeyDelivery:
    """Fetches the key sets that the table needs, and passes them to the workers."""

    def __init__(
        self,
        arena: Arena,
        folder: Path | None,
        own_ports: Callable[[], tuple[int, ...]] = tuple,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`own_ports`: of this proxy's admin, metrics and ready servers, where keys are never fetched."""
        self.told: dict[_Source, PublishedKeys] = {}
        self.on_told: Callable[[], None] = lambda: None  # workers are to be brought up to date
        self.on_problems: Callable[[], None] = lambda: None
        self._arena = arena
        self._folder = folder
        self._clock = clock
        self._own_ports = own_ports
        self._means: SourceContext | None = None
        self._placed: Mapping[Key, Placed] = {}
        self._asking: dict[str, tuple[_Asked, ...]] = {}  # by unit
        self._sources: dict[_Source, KeySource] = {}
        self._tasks: dict[KeySource, asyncio.Task[None]] = {}
        self._left: dict[_Source, None] = {}  # beyond SOURCES
        self._wakeup = asyncio.Event()
        self._serial = 0

    # --- tables -----------------------------------------------------------------------------------------------------

    def follow(self, touched: Collection[Key], placed: Mapping[Key, Placed]) -> None:
        """Note what a table moved; runs in the loop, where no blob can go."""
        self._placed = placed
        moved = False
        for key in touched:
            if key[0] == "policy":
                specs = self._specs(key)
                moved = moved or specs != self._asking.get(key[1], ())
                if specs:
                    self._asking[key[1]] = specs
                else:
                    self._asking.pop(key[1], None)
        if moved:
            self._sum_up()
        if self._sources:
            clusters = {name for type_, name in touched if type_ == "cluster"}
            for (_, cluster, _), one in self._sources.items():
                if cluster in clusters:
                    one.on_cluster()

    def _specs(self, key: Key) -> tuple[_Asked, ...]:
        one = self._placed.get(key)
        data = self._arena.read(one.block) if one is not None else b""
        if _MARK not in data:
            return ()
        try:
            unit = _POLICY.decode(data)
        except ValueError:
            return ()  # workers refuse it, and say so
        providers = unit.jwt.providers if unit.jwt is not None else ()
        if unit.oidc is not None:
            return ((unit.oidc.remote.issuer, unit.oidc.remote),)
        return tuple((one.name, one.remote) for one in providers if one.remote)

    def _sum_up(self) -> None:
        wanted: dict[_Source, RemoteKeys] = {}
        for name in sorted(self._asking):
            for _, spec in self._asking[name]:
                source = _source_of(spec)
                known = wanted.get(source, spec)
                wanted[source] = RemoteKeys(
                    spec.uri,
                    spec.cluster,
                    every=min(spec.every, known.every),
                    retry=max(spec.retry, known.retry),
                    allowed=tuple(one for one in spec.allowed if one in known.allowed),
                    issuer=spec.issuer,
                )
        gone = [source for source in self._sources if source not in wanted]
        for source in gone:
            task = self._tasks.pop(self._sources.pop(source), None)
            if task is not None:
                task.cancel()
        self._left = {}
        for source, spec in wanted.items():
            if source in self._sources:
                self._sources[source].spec = spec
            elif len(self._sources) < SOURCES:
                self._sources[source] = self._make(spec)
            else:
                self._left[source] = None
                if source not in self.told:
                    self._notify(source, b"")
        for source in [one for one in self.told if one not in wanted]:
            del self.told[source]
        self._wakeup.set()
        self.on_told()

    def _make(self, spec: RemoteKeys) -> KeySource:
        from edgefast.proxy.jwks.key_source import KeySource

        return KeySource(spec, self.source_context(), self._notify, lambda: self.on_problems())

    def source_context(self) -> SourceContext:
        """Return what all requests to issuers share."""
        from edgefast.proxy.jwks.key_source import SourceContext

        if self._means is None:
            self._means = SourceContext(
                self._folder,
                self._clock,
                lambda name: self._read(_CLUSTER, ("cluster", name)),
                lambda name: self._read(_SECRET, ("secret", name)),
                self._own_ports,
            )
        return self._means

    # --- identity providers -----------------------------------------------------------------------------------------

    def oidc_of(self, unit: str) -> ir.Oidc | None:
        """Return the login of a policy unit of the table."""
        found = self._read(_POLICY, ("policy", unit))
        return found.oidc if found is not None else None

    def provider_of(self, remote: RemoteKeys) -> ProviderMetadata | None:
        """Return what is known of an identity provider."""
        from edgefast.auth.oidc.provider_metadata import read_provider

        told = self.told.get(_source_of(remote))
        found = read_provider(told.data)[0] if told is not None and told.data else None
        return found if found is not None and found.issuer == remote.issuer else None

    def on_id_token(self, remote: RemoteKeys, kid: str) -> None:
        """The token endpoint of a provider returned an ID token with this key."""
        one = self._sources.get(_source_of(remote))
        if one is not None and kid:
            one.fetch_key(kid)

    def _read(self, decoder: msgspec.msgpack.Decoder[_T], key: Key) -> _T | None:
        one = self._placed.get(key)
        try:
            return decoder.decode(self._arena.read(one.block)) if one is not None else None
        except ValueError:
            return None

    # --- workers ----------------------------------------------------------------------------------------------------

    def ask(self, source: _Source) -> None:
        """A worker has a token with a key that nobody knows."""
        if source in self._sources:
            self._sources[source].ask()
        elif source in self._left:
            self._notify(source, b"")

    def _notify(self, source: _Source, data: bytes) -> None:
        self._serial += 1
        self.told[source] = PublishedKeys(self._serial, data)
        self.on_told()

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fetch what tables ask for, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._wakeup.wait()
                    self._wakeup.clear()
                    for one in self._sources.values():
                        if one not in self._tasks:
                            self._tasks[one] = tasks.create_task(one.run())
                    if self._means is not None:
                        await self._means.tidy()
        finally:
            if self._means is not None:
                self._means.names.close()

    # --- what went wrong --------------------------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps keys from being fetched, for each provider of each policy."""
        found = []
        for unit in sorted(self._asking):
            for provider, spec in self._asking[unit]:
                if message := self._find_trouble(spec):
                    one = self._sources.get(_source_of(spec))
                    old = one is not None and bool(one.data)
                    found.append(_problem(unit, provider, spec.uri, message, old=old))
        return tuple(dict.fromkeys(found))

    def failing(self) -> dict[tuple[str, str], bool]:
        """Return for each (policy, provider) with fetched keys whether its keys cannot be fetched now."""
        found: dict[tuple[str, str], bool] = {}
        for unit, requested in self._asking.items():
            policy = "/".join(_split(unit))
            for provider, spec in requested:
                before = found.get((policy, provider), False)
                found[policy, provider] = before or bool(self._find_trouble(spec))
        return found

    def _find_trouble(self, spec: RemoteKeys) -> str:
        """Return why the keys cannot be fetched; "" if they can."""
        source = _source_of(spec)
        if source in self._left:
            return f"the limit of {SOURCES} key sets is reached"
        one = self._sources.get(source)
        return one.trouble if one is not None else ""


def _source_of(spec: RemoteKeys) -> _Source:
    return spec.uri, spec.cluster, spec.issuer


def _split(unit: str) -> tuple[str, str]:
    """Return namespace and name of the policy of a unit ("security/NAMESPACE/NAME#jwt")."""
    _, namespace, rest = unit.split("/", 2)
    return namespace, rest.partition("#")[0]


def _problem(unit: str, provider: str, uri: str, problem: str, *, old: bool) -> Problem:
    from edgefast.proxy.jwks.key_file import LAST  # loads the library of keys

    owner = ObjectRef("SecurityPolicy", *_split(unit))
    if unit.endswith("#oidc"):
        effect = "sessions stay valid, and logins "
        effect += (
            f"use the previous keys for {LAST / 3600:.0f} h after their fetch" if old else "get 503"
        )
        return Problem(
            owner,
            "spec.oidc.provider",
            "KeysNotFetched",
            f"discovery document and keys of {show_query(provider)} cannot be fetched: {problem}; {effect}",
            hint="correct the issuer, or check the provider; edgefast retries",
            severity="warning",
        )
    effect = (
        f"the previous keys stay in use for {LAST / 3600:.0f} h after their fetch, and tokens with other keys get 401"
        if old
        else "requests with its tokens get 503"
    )
    return Problem(
        owner,
        "spec.jwt",
        "KeysNotFetched",
        f'provider "{provider}": the keys at {show_query(uri)} cannot be fetched: {problem}; {effect}',
        hint="correct the uri, or check the server at this address; edgefast retries",
        severity="warning",
    )
