"""A push server in a process of its own, so that its memory is its own: told what to publish on standard input."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
from pathlib import Path
from typing import Any

import uvloop

from controller.certs.authority_set import encode_authority_set
from edgefast.table.shards import Shards, make_resource
from tests.controller.xds_server.loopback import FLEET, Loopback, shards

BODY = "x" * 1000


def table(hosts: int, changed: str) -> Shards:
    """Return a table of `hosts` virtual hosts of 1 KB each; the first one has another body."""
    return shards(
        make_resource("virtual_host", f"listener/host-{i:05}", (BODY if i else changed).encode())
        for i in range(hosts)
    )


def resident() -> float:
    """MiB of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def main(folder: Path) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with Loopback(folder / "keys") as loopback:
        (folder / "ring.json").write_text(json.dumps(encode_authority_set(loopback.ring)))
        say({"port": loopback.certificates.port})
        while line := (await reader.readline()).decode().split():
            if line[0] == "publish":
                loopback.fleets.publish(FLEET, table(int(line[1]), line[2]))
            version = loopback.fleets.version(FLEET)
            acks = loopback.fleets.acks(FLEET).values()
            gc.collect()
            counts = loopback.server.counts
            say(
                {
                    "version": version,
                    "current": sum(one.version == version and one.connected for one in acks),
                    "resident": resident(),
                    "cpu": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]),
                    "streams": counts.streams,
                    "bytes": counts.bytes,
                    "resources": counts.resources,
                    "encoded": loopback.fleets.find(FLEET).history.encoded,
                    "refused": sum(loopback.server.refusals.counts.values()),
                }
            )


def say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))  # as the controller does
