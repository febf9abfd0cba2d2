"""The network of a world: the node's namespace with its bridge and routes, the client's namespace outside it.

In: nothing. Out: a `Network` whose names contain a slot that no other world on this machine has: the node's namespace
`efw<slot>`, the client's `efw<slot>-client`, pods' `efw<slot>-<pod>`, and a link named `efw<slot>` to this machine, so
that programs outside can talk to the API server.
Must never: touch a namespace or link of another name.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cluster.tools.missing import debian
from cluster.world import addresses as at
from cluster.world import netns

_FOLDER = Path("/run/netns")


class Network:
    """The namespaces and links of one world."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.node = f"efw{slot}"
        self.client = f"{self.node}-client"
        self.machine_end, self.node_end = at.link_addresses(slot)

    @classmethod
    def make(cls) -> Network:
        """Take the first free slot and set everything up."""
        if os.geteuid():
            raise PermissionError("a world needs root: it makes network namespaces")
        for slot in range(at.SLOTS):
            network = cls(slot)
            done = subprocess.run(
                [debian("ip"), "netns", "add", network.node], capture_output=True, text=True
            )
            if done.returncode == 0:
                network._set_up()
                return network
            if "File exists" not in done.stderr:
                raise RuntimeError(f"ip netns add {network.node}: {done.stderr}")
        raise RuntimeError(f"all {at.SLOTS} worlds of this machine are taken")

    def remove(self) -> None:
        """Kill what still runs in our namespaces and remove them; links go with them."""
        mine = [name for name in _names() if name == self.node or name.startswith(f"{self.node}-")]
        for name in mine:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for pid in pids.stdout.split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    continue
        batch("", (f"netns del {name}" for name in mine), force=True)
        batch("", [f"link del {self.node}"], force=True)

    def _set_up(self) -> None:
        own, client = self.node, self.client
        batch(
            "",
            [
                f"netns add {client}",
                f"link add {own} type veth peer name host0 netns {own}",
                f"addr add {self.machine_end}/30 dev {own}",
                f"link set {own} up",
            ],
        )
        batch(
            own,
            [
                "link set lo up",
                f"addr add {at.NODE_ADDRESS}/32 dev lo",
                f"addr add {self.node_end}/30 dev host0",
                "link set host0 up",
                "link add cni0 type bridge forward_delay 0",
                f"addr add {at.POD_GATEWAY}/{at.POD_PREFIX} dev cni0",
                "link set cni0 up",
                # connect() on the node needs a route before the proxy's rules replace the address
                f"route add {at.SERVICE_RANGE} dev cni0 src {at.NODE_ADDRESS}",
                f"route add {at.LB_RANGE} dev cni0 src {at.NODE_ADDRESS}",
                f"link add client0 type veth peer name eth0 netns {client}",
                f"addr add {at.CLIENT_GATEWAY}/24 dev client0",
                "link set client0 up",
            ],
        )
        batch(
            client,
            [
                "link set lo up",
                f"addr add {at.CLIENT_ADDRESS}/24 dev eth0",
                "link set eth0 up",
                f"route add default via {at.CLIENT_GATEWAY}",
            ],
        )
        sysctl(own, "net/ipv4/ip_forward", "1")
        # Tests open many short connections; a port is free again as soon as the peer allows it.
        sysctl(client, "net/ipv4/ip_local_port_range", "1024 65535")


def batch(name: str, commands: Iterable[str], *, force: bool = False) -> None:
    """Run `ip` commands in a namespace ("" for this one); with `force` every one is tried and failures are ignored."""
    where = ["-n", name] if name else []
    done = subprocess.run(
        ["ip", *where, *(["-force"] if force else []), "-batch", "-"],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
    )
    if done.returncode and not force:
        raise RuntimeError(f"ip {' '.join(where)}: {done.stderr}")


def sysctl(name: str, key: str, value: str) -> None:
    """Set a kernel setting of a network namespace."""
    with netns.inside(name):
        fd = os.open(f"/proc/sys/{key}", os.O_WRONLY)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)


def _names() -> list[str]:
    return os.listdir(_FOLDER) if _FOLDER.exists() else []
