"""A pod's network: a namespace with an address of the node's bridge.

In: a pod's id. Out: its address, given back when the pod is gone; the oldest free one is taken first, so that an address
is not reused at once.
Must never: block the event loop: `ip` runs as a child.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Iterable

from cluster.world import addresses as at
from cluster.world import network


class PodNetwork:
    """All pod addresses of the node."""

    def __init__(self, node_netns: str) -> None:
        self.node_netns = node_netns
        hosts = [str(one) for one in ipaddress.ip_network(at.POD_RANGE).hosts()]
        self._free = deque(hosts[9:])

    def take(self, wanted: str | None = None) -> str:
        """Return an address; the one wanted when it is free. There are more than pods allowed on the node."""
        if wanted is not None and wanted in self._free:
            self._free.remove(wanted)
            return wanted
        return self._free.popleft()

    def netns_of(self, pod_id: str) -> str:
        """Return the name of a pod's namespace."""
        return f"{self.node_netns}-{pod_id}"

    async def connect(self, pod_id: str, address: str) -> None:
        """Make a pod's namespace and link it to the bridge."""
        name, link = self.netns_of(pod_id), f"v{pod_id}"
        await self._remove(pod_id)  # left by an earlier agent
        await _ip("", [f"netns add {name}"])
        await _ip(
            self.node_netns,
            [
                f"link add {link} type veth peer name eth0 netns {name}",
                f"link set {link} master cni0 up",
                f"link set {link} type bridge_slave hairpin on",
            ],
        )
        await _ip(
            name,
            [
                "link set lo up",
                f"addr add {address}/{at.POD_PREFIX} dev eth0",
                "link set eth0 up",
                f"route add default via {at.POD_GATEWAY}",
            ],
        )
        # Container runtimes let every user bind every port.
        network.sysctl(name, "net/ipv4/ip_unprivileged_port_start", "0")

    async def give_back(self, pod_id: str, address: str) -> None:
        """Remove a pod's namespace and free its address."""
        await self._remove(pod_id)
        self._free.append(address)

    async def _remove(self, pod_id: str) -> None:
        await _ip(self.node_netns, [f"link del v{pod_id}"], force=True)
        await _ip("", [f"netns del {self.netns_of(pod_id)}"], force=True)


async def _ip(name: str, commands: Iterable[str], *, force: bool = False) -> None:
    where = ["-n", name] if name else []
    child = await asyncio.create_subprocess_exec(
        "ip",
        *where,
        *(["-force"] if force else []),
        "-batch",
        "-",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await child.communicate(("\n".join(commands) + "\n").encode())
    if child.returncode and not force:
        raise OSError(f"ip {' '.join(where)}: {said.decode()}")
