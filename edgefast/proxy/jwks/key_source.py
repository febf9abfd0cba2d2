"""KeySource: keeps one key set fresh.

In: its location (ircredential.RemoteKeys), clusters and secrets of the table, reports of tokens
with a key that the set does not contain.
If that is a discovery document (`RemoteKeys.issuer`), it is read first, and it names the keys.
Out: a callback with the keys whenever they change, and after each report, at once or after another
fetch; b"" for no keys. Keys on disk are delivered first. Keys are trusted for 24 hours after their
fetch.
Must never: fetch more than once in `AT_MOST_EVERY` seconds because of tokens of clients, or do work in
the loop that a thread can do.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from edgefast import ir
from edgefast.auth.jwt.key_set import KeySetError, parse_key_set, read_kids, write
from edgefast.auth.oidc.provider_metadata import (
    MetadataError,
    parse_metadata,
    read_provider,
    write_provider,
)
from edgefast.diagnostics.redact import show_query
from edgefast.ir.credentials import RemoteKeys
from edgefast.proxy.jwks.http_fetch import FetchError, fetch
from edgefast.proxy.jwks.key_file import LAST, KeptKeys, KeyFiles, Source
from edgefast.proxy.jwks.target import Target, TargetError, find_target
from edgefast.rate_limit.names import Names

__all__ = [
    "AT_MOST_EVERY",
    "AT_ONCE",
    "JITTER",
    "NAMED",
    "RETRY_MAX",
    "SUSPECTS",
    "KeySource",
    "SourceContext",
]

log = logging.getLogger(__name__)

#: Sources that are fetched at a time; those whose last fetch failed wait for one another alone.
AT_ONCE = 32
SUSPECTS = 8
#: Seconds between two fetches of one source that tokens with unknown keys bring about.
AT_MOST_EVERY = 10.0
#: Names of keys in ID tokens of the provider's own token endpoint, each of which may bring about one fetch
#: in AT_MOST_EVERY seconds.
NAMED = 8
#: Part of the time between two fetches that chance decides, so that machines do not ask together.
JITTER = 0.1
#: Seconds between two tries that fail, at least and at most.
RETRY_MIN = 1.0
RETRY_MAX = 60.0
#: Targets that are kept, and seconds: a TLS context with the system's CA certificates takes 50 ms of CPU.
TARGETS = 256
TARGET_KEPT = 60.0

_T = TypeVar("_T")


class _KeptTarget(NamedTuple):
    """A target, while its cluster and secrets are the same."""

    made_of: tuple[ir.Cluster | None, dict[str, ir.Secret | None]]
    target: Target
    until: float


class SourceContext:
    """What all sources share."""

    def __init__(
        self,
        folder: Path | None,
        clock: Callable[[], float],
        cluster: Callable[[str], ir.Cluster | None],
        secret: Callable[[str], ir.Secret | None],
        own_ports: Callable[[], tuple[int, ...]],
    ) -> None:
        self.own_ports = own_ports
        self.clock = clock
        self.cluster = cluster
        self.secret = secret
        self.names = Names()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._suspects = asyncio.Semaphore(SUSPECTS)
        self._files = KeyFiles(folder, clock) if folder is not None else None
        self._disk = asyncio.Lock()
        self._targets: dict[tuple[RemoteKeys, bool], _KeptTarget] = {}

    def place(self, *, suspect: bool) -> asyncio.Semaphore:
        """Return what to wait for before a fetch."""
        return self._suspects if suspect else self._places

    async def target(self, spec: RemoteKeys, *, discovered: bool = False) -> Target:
        """Return where to ask. Raises TargetError."""
        cluster = self.cluster(spec.cluster) if spec.cluster else None
        tls = cluster.tls if cluster is not None else None
        names = (tls.ca, tls.certificate) if tls is not None else ()
        secrets = {one: self.secret(one) for one in names if one}
        made_of = cluster, secrets
        kept = self._targets.get((spec, discovered))
        if kept is not None and kept.made_of == made_of and self.clock() < kept.until:
            return kept.target
        find = partial(find_target, discovered=discovered)
        target = await asyncio.to_thread(find, spec, cluster, secrets.get)
        while len(self._targets) >= TARGETS:
            del self._targets[next(iter(self._targets))]
        until = self.clock() + TARGET_KEPT
        self._targets[spec, discovered] = _KeptTarget(made_of, target, until)
        return target

    async def get(self, spec: RemoteKeys, *, discovered: bool = False) -> bytes:
        """Return what is at an address. Raises TargetError and FetchError."""
        target = await self.target(spec, discovered=discovered)
        return await fetch(target, self.names, own_ports=self.own_ports())

    async def load(self, source: Source) -> KeptKeys | None:
        """Read what is on disk."""
        return await self._do(self._files.load, source) if self._files is not None else None

    async def save(self, kept: KeptKeys) -> None:
        """Write keys."""
        if self._files is not None:
            await self._do(self._files.save, kept)

    async def tidy(self) -> None:
        """Remove old files."""
        if self._files is not None:
            await self._do(self._files.tidy)

    async def _do(self, do: Callable[..., _T], *args: object) -> _T:
        async with self._disk:
            return await asyncio.to_thread(do, *args)


class KeySource:
    """Fetches one key set again before it expires."""

    def __init__(
        self,
        spec: RemoteKeys,
        means: SourceContext,
        tell: Callable[[Source, bytes], None],
        on_trouble: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.data = b""
        self.trouble = ""  # why it cannot be fetched
        self.skipped: tuple[str, ...] = ()
        self._source = (spec.uri, spec.cluster, spec.issuer)
        self._means = means
        self._write_message = tell
        self._on_trouble = on_trouble
        self._look = asyncio.Event()  # whether there is something to do now
        self._wanted = True  # a word is waited for
        self._moved = False  # the table has another cluster for it
        self._named: dict[str, float] = {}  # by kid of an ID token: loop time
        self._missing: frozenset[str] = frozenset()  # of `_named`: no fetch began since
        self._fetched_at = 0.0  # Unix seconds
        self._ended = float("-inf")  # loop time of the last fetch
        self._failures = 0

    def ask(self) -> None:
        """A worker waits for a word."""
        self._wanted = True
        self._look.set()

    def fetch_key(self, kid: str) -> None:
        """The provider's own token endpoint returned an ID token with this key: fetch at once if it is new.

        The provider signs few keys at a time, and a client cannot make it sign with another one. Still
        RETRY_MIN seconds pass between two fetches.
        """
        now = asyncio.get_running_loop().time()
        self._named = {one: at for one, at in self._named.items() if now - at < AT_MOST_EVERY}
        if kid in self._named or len(self._named) >= NAMED or kid in self._kids():
            return
        self._named[kid] = now
        self._missing |= {kid}
        self._look.set()

    def _kids(self) -> frozenset[str]:
        return read_kids(read_provider(self.data)[1]) if self.data else frozenset()

    def on_cluster(self) -> None:
        """Its cluster is another one now: it may answer."""
        if self._failures:
            self._moved = True
            self._look.set()

    async def run(self) -> None:
        """Keep it fresh, until cancelled."""
        loop = asyncio.get_running_loop()
        kept = await self._means.load(self._source)
        if kept is not None:
            self.data, self._fetched_at = kept.keys, kept.fetched_at
            self._notify()
        due = loop.time()
        while True:
            try:
                async with asyncio.timeout_at(due):
                    await self._look.wait()
            except TimeoutError:
                pass
            self._look.clear()
            soon = self._moved or bool(self._missing)
            earliest = self._ended + (RETRY_MIN if soon else AT_MOST_EVERY)
            if loop.time() < min(due, earliest):
                if self._wanted and not self._missing:  # it was fetched a moment ago
                    self._notify()
                due = min(due, earliest) if soon else due
                continue
            self._moved, self._missing = False, frozenset()
            await self._renew()
            self._missing -= self._kids()
            due = loop.time() + self._delay()

    def _notify(self) -> None:
        self._wanted = False
        self._write_message(self._source, self.data)

    def _delay(self) -> float:
        every, retry = self.spec.every / 1000, max(self.spec.retry / 1000, RETRY_MIN)
        chance = random.uniform(1 - JITTER, 1 + JITTER)
        if not self._failures:
            return max(every, RETRY_MIN) * chance
        delay = min(retry * 2.0 ** min(self._failures - 1, 16), RETRY_MAX, max(every, retry))
        return max(delay * chance, retry)

    async def _renew(self) -> None:
        before = (self.trouble, self.skipped)
        data = self.data
        try:
            async with self._means.place(suspect=self._failures > 0):
                data = await self._fetch()
        except (FetchError, TargetError, KeySetError, MetadataError, OSError) as error:
            self._failures += 1
            self.trouble = str(error)
            if self._means.clock() - self._fetched_at >= LAST:
                data = b""
        else:
            self._failures, self.trouble = 0, ""
            self._fetched_at = self._means.clock()
        self._ended = asyncio.get_running_loop().time()
        if data != self.data or self._wanted:
            self.data = data
            self._notify()
        if before != (self.trouble, self.skipped):
            self._log()
            self._on_trouble()
        if not self._failures:
            await self._means.save(KeptKeys(*self._source, self._fetched_at, data))

    async def _fetch(self) -> bytes:
        spec, means = self.spec, self._means
        metadata = None
        if spec.issuer:
            text = await means.get(spec)
            plain = bool(spec.cluster)
            metadata = parse_metadata(text, spec.issuer, plain=plain)
            spec = msgspec.structs.replace(spec, uri=metadata.jwks_uri)
        text = await means.get(spec, discovered=metadata is not None)
        parsed = await asyncio.to_thread(parse_key_set, text)
        self.skipped = parsed.skipped
        keys = write(parsed.keys)
        return write_provider(metadata, keys) if metadata is not None else keys

    def _log(self) -> None:
        shown = show_query(self.spec.uri)
        if self.trouble:
            log.warning("jwt: keys of %s cannot be fetched: %s", shown, self.trouble)
            return
        log.info("jwt: keys of %s were fetched", shown)
        for one in self.skipped:
            log.warning("jwt: a key of %s is not used: %s", shown, one)
