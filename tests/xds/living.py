"""A client of the stream inside a test: credentials on disk, what it brought in, an end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from edgefast.table import Shards
from edgefast.xds import client as clients
from edgefast.xds.client import XdsClient
from edgefast.xds.credentials import CredentialFiles
from edgefast.xds.messages import Node
from edgefast.xds.rejections import Refused
from proxy.living import until
from proxy.pki import Authority, Pair
from xds.plain import client_pair

NODE = Node("edge-0", formats=("f",), version="1", workers=2)
DEADLINE = 100.0


def write_files(
    folder: Path, authority: Authority, pair: Pair | None = None, token: str = ""
) -> CredentialFiles:
    """Write what a proxy shows and believes, replacing what is there."""
    pair = pair or client_pair(authority)
    parts = {"ca.crt": authority.bundle, "tls.crt": pair.certificate, "tls.key": pair.key}
    if token:
        parts["token"] = token.encode()
    for name, data in parts.items():
        fresh = folder / f"{name}.new"
        fresh.write_bytes(data)
        fresh.rename(folder / name)
    return CredentialFiles(
        folder / "ca.crt",
        folder / "tls.crt",
        folder / "tls.key",
        folder / "token" if token else None,
    )


class Taker:
    """Takes tables in, and refuses what it is told to."""

    def __init__(self) -> None:
        self.tables: list[Shards] = []
        self.refuses: Callable[[Shards], Sequence[Refused]] = lambda _: ()
        self.free = asyncio.Event()  # tables are taken in while it is set
        self.free.set()

    async def __call__(self, shards: Shards) -> Sequence[Refused]:
        await self.free.wait()
        self.tables.append(shards)
        return self.refuses(shards)

    @property
    def version(self) -> str:
        return self.tables[-1].version if self.tables else ""


@contextlib.asynccontextmanager
async def running(
    target: str, files: CredentialFiles, taker: Taker, **options: Any
) -> AsyncIterator[XdsClient]:
    """A client that runs for as long as the block does."""
    client = XdsClient(target, files.read, NODE, taker, **options)
    task = asyncio.create_task(client.run())
    try:
        yield client
        assert not task.done(), "the client ended by itself"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()


def play(talk: Coroutine[Any, Any, None]) -> None:
    """Run a test's conversation, with a deadline."""
    asyncio.run(asyncio.wait_for(talk, DEADLINE))


def hasten(monkeypatch: Any, **seconds: float) -> None:
    """Make the client's times short."""
    for name, value in {"_BACKOFF_FIRST": 0.01, "_BACKOFF_MAX": 0.1, **seconds}.items():
        monkeypatch.setattr(clients, name, value)


__all__ = ["NODE", "Taker", "hasten", "play", "running", "until", "write_files"]
