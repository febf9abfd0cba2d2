"""A thousand proxies on one controller: everyone gets every change, memory is bounded, and the stuck hold nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.certs.authority_set import AuthoritySet, decode_authority_set
from edgefast.httpd.address import Address
from edgefast.xds.messages import METHOD
from tests.controller.xds_server.loopback import POD, Proxy, client_pair, open_channel

log = logging.getLogger(__name__)  # what was measured: --log-cli-level=info

PROXIES = 1000
STUCK = 50
HOSTS = 2000  # 1 KB each: a table of 2 MB, more than what a connection takes in by itself
#: MiB of the server for one proxy that follows: gRPC's connection and TLS, our stream.
EACH = 0.25
#: MiB for one that reads nothing: a message, and what gRPC and the kernel hold of it.
EACH_STUCK = 2.0


class Child:
    """The server's process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        here = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.xds_server_child", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=here,
            env={**os.environ, "PYTHONPATH": f"{here}:{here / 'tests'}", "GRPC_VERBOSITY": "ERROR"},
        )
        self.address = Address("127.0.0.1", self._read()["port"])
        self.ring: AuthoritySet = decode_authority_set(
            json.loads((folder / "ring.json").read_text())
        )

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def _notify(self, line: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    async def tell(self, line: str) -> Any:
        """Say a line and return the answer."""
        return await asyncio.to_thread(self._notify, line)

    def stop(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    started = Child(tmp_path)
    yield started
    started.stop()


async def connect(child: Child, number: int, pair: Any) -> tuple[Any, Proxy]:
    channel = open_channel(child.address, child.ring.bundle, pair)
    proxy = Proxy(channel.stream_stream(METHOD)(), f"{POD[:-5]}{number:05}")
    await proxy.open()
    return channel, proxy


async def follow(proxy: Proxy, version: str) -> None:
    """Take in batches up to a version; what is taken in is not kept."""
    while proxy.version != version:
        await proxy.answer(await proxy.batch())
        proxy.held = Forgetful()


class Forgetful(dict):  # type: ignore[type-arg]
    """A thousand tables would not fit."""

    def __setitem__(self, key: Any, value: Any) -> None:
        return

    def __delitem__(self, key: Any) -> None:
        return


async def test_a_thousand_proxies(child: Child) -> None:
    pair = client_pair(child.ring)
    said = await child.tell(f"publish {HOSTS} first")
    empty = said["resident"]
    channels, proxies = [], []
    for number in range(PROXIES):
        channel, proxy = await connect(child, number, pair)
        proxy.held = Forgetful()
        await follow(proxy, said["version"])
        channels.append(channel)
        proxies.append(proxy)
    said = await settled(child, PROXIES)
    assert said["streams"] == PROXIES
    assert said["encoded"] == HOSTS  # once, for all of them
    each = (said["resident"] - empty) / PROXIES
    log.info("%s: %s", "MiB for each proxy", round(each, 3))
    assert each < EACH
    # Proxies that read nothing: they have the window of their connection and one message.
    stuck = [await connect(child, PROXIES + number, pair) for number in range(STUCK)]
    before = said
    for i in range(10):
        said = await child.tell(f"publish {HOSTS} change-{i}")
        await asyncio.gather(*(follow(one, said["version"]) for one in proxies))
    said = await settled(child, PROXIES)
    sent = (said["bytes"] - before["bytes"]) / PROXIES / 10
    # A change once, for all of them; a stuck one may have begun with a table that has been replaced since.
    assert HOSTS + 10 <= said["encoded"] <= HOSTS + 10 + STUCK
    # A change costs a stream one resource and a commit (and each of the stuck a part of its table, once).
    assert sent < 1000 + STUCK * HOSTS * 1200 / PROXIES / 10
    grown = said["resident"] - before["resident"]
    log.info("%s: %s", "MiB for each stuck proxy", round(grown / STUCK, 3))
    assert grown < STUCK * EACH_STUCK
    # Much more of the same: no growth.
    for i in range(20):
        last = await child.tell(f"publish {HOSTS} more-{i}")
        await asyncio.gather(*(follow(one, last["version"]) for one in proxies))
    last = await settled(child, PROXIES)
    assert last["resident"] - said["resident"] < 10
    cpu = (last["cpu"] - said["cpu"]) / 20 / PROXIES
    log.info("%s: %s", "CPU ms for each change and proxy", round(cpu * 1000, 3))
    log.info("%s: %s", "MiB of the server", round(last["resident"], 1))
    for _, proxy in stuck:
        proxy.call.cancel()
    for proxy in proxies:
        proxy.call.cancel()
    await asyncio.gather(*(channel.close() for channel in channels))
    await asyncio.gather(*(channel.close() for channel, _ in stuck))
    async with asyncio.timeout(120):
        while (await child.tell("stats"))["streams"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def settled(child: Child, current: int) -> Any:
    """Return the server's state once so many nodes serve the present table."""
    async with asyncio.timeout(240):
        while (said := await child.tell("stats"))["current"] < current:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return said
