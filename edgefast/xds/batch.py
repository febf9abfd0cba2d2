"""Mirror and Batch: the proxy side of the stream without I/O: the received table, and the batch in progress.

In: decoded responses.
Out: `Shards` of the whole table when a batch is complete and its digest is correct; answers by
nonce.
Must never: release an incomplete batch, or hold more than TABLE_BYTES and TABLE_RESOURCES;
exceeding them raises ProtocolError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from edgefast.collections.sorted_map import EMPTY
from edgefast.table.shards import TYPES, Key, Resource, Shards, digest_resource, make_resource
from edgefast.xds.limits import HELD_LIMIT, TABLE_BYTES, TABLE_RESOURCES
from edgefast.xds.messages import Node, ProtocolError, Request, Response
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import COMMIT, Refused

__all__ = ["Batch", "DigestMismatch", "Mirror"]

_MODULUS = 2**128


class DigestMismatch(Exception):
    """The table that came of a batch is not the one that the server means."""


class Mirror:
    """The table as the server last sent it whole, with its digest and size kept up to date."""

    def __init__(self, shards: Shards | None = None) -> None:
        """`shards`: a table from elsewhere (the last good one); its version is computed afresh."""
        resources = shards.resources if shards is not None else EMPTY
        self.digest = sum(map(digest_resource, resources.values())) % _MODULUS
        self.size = sum(len(one.data) for one in resources.values())
        self.shards = shards if shards is not None else Shards(EMPTY, render_version(0))

    @property
    def version(self) -> str:
        """The version of the whole."""
        return render_version(self.digest)

    def held(self, without: Iterable[Key]) -> dict[Key, str]:
        """List versions by key, but for those that are not in force; none when they are too much to say (HELD_LIMIT)."""
        refused = set(without)
        resources = self.shards.resources
        held = {key: one.version for key, one in resources.items() if key not in refused}
        message = sum(len(name) + len(version) for (_, name), version in held.items())
        return held if message <= HELD_LIMIT else {}


class Batch:
    """What has come since the last commit. Feed it every response; `close` it with the commit, or as soon as it is whole."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._puts: dict[Key, Resource] = {}
        self._removed: set[Key] = set()
        self._digest = mirror.digest
        self._bytes = 0
        self._names = 0
        self._parts: list[tuple[str, str, frozenset[str]]] = []  # type, nonce, names put

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, response: Response) -> int:
        """Take in one response that is no commit alone; returns the bytes of its resources. Raises ProtocolError."""
        type_ = response.type
        if type_ not in TYPES or not (response.puts or response.removed):
            raise ProtocolError(f"a response of {type_} is empty")
        size = sum(len(one.data) for one in response.puts)
        self._bytes += size
        self._names += len(response.puts) + len(response.removed)
        if self._bytes > TABLE_BYTES or self._names > TABLE_RESOURCES:
            raise ProtocolError(
                f"a batch is over its limit ({TABLE_BYTES} bytes, {TABLE_RESOURCES} resources)"
            )
        for one in response.puts:
            if make_resource(type_, one.name, one.data).version != one.version:
                raise ProtocolError(f"the version of {type_} {one.name} is not its digest")
            self._exchange((type_, one.name), one)
        for name in response.removed:
            self._exchange((type_, name), None)
        if not response.commits:  # else the answer to the commit is the answer to it
            names = frozenset(one.name for one in response.puts)
            self._parts.append((type_, response.nonce, names))
        return size

    def _exchange(self, key: Key, one: Resource | None) -> None:
        """Put a resource in the place of what the key stood for, or nothing."""
        old = self._puts.pop(key, None)
        if old is None and key not in self._removed:
            old = self._mirror.shards.resources.get(key)
        if old is not None:
            self._digest -= digest_resource(old)
        if one is None:
            self._removed.add(key)
        else:
            self._removed.discard(key)
            self._puts[key] = one
            self._digest += digest_resource(one)

    @property
    def version(self) -> str:
        """The version of the table that what has come makes of the one before."""
        return render_version(self._digest)

    def close(self, version: str) -> Mirror:
        """Return the table that is whole with `version`; raises DigestMismatch, ProtocolError."""
        if self.version != version:
            raise DigestMismatch
        before = self._mirror
        resources = before.shards.edit()
        size = before.size
        for key in (*self._puts, *self._removed):
            old = resources.pop(key, None)
            if old is not None:
                size -= len(old.data)
        for key, one in self._puts.items():
            resources[key] = one
            size += len(one.data)
        if size > TABLE_BYTES or len(resources) > TABLE_RESOURCES:
            raise ProtocolError(
                f"a table is over its limit ({TABLE_BYTES} bytes, {TABLE_RESOURCES} resources)"
            )
        after = Mirror()
        after.digest, after.size = self._digest % _MODULUS, size
        after.shards = Shards(resources.done(), version)
        return after

    def answers(self, refused: Sequence[Refused]) -> Iterator[Request]:
        """Yield the answer to every response but the commit."""
        by_key = {(one.type, one.name): one for one in refused}
        for type_, nonce, names in self._parts:
            bad = tuple(by_key[type_, name] for name in names if (type_, name) in by_key)
            yield Request(type=type_, nonce=nonce, refused=bad)


def answer_commit(
    nonce: str,
    refused: Sequence[Refused],
    node: Node | None = None,
    problems: Sequence[ProxyProblem] = (),
) -> Request:
    """Return the answer to a commit: all that is not in force, or an ACK; and what else is wrong with the node."""
    return Request(
        type=COMMIT,
        nonce=nonce,
        refused=tuple(refused),
        node=node if problems else None,
        troubles=tuple(problems),
    )


def render_version(digest: int) -> str:
    """Write a digest as `Shards.version` does."""
    return f"{digest % _MODULUS:032x}"
