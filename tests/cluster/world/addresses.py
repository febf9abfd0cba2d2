"""The addresses of a world. They are the same in every world, whose network namespaces keep them apart.

In: the slot of a world for the one link that leaves it, to this machine. Out: constants and two addresses.
Must never: use addresses that a machine may route somewhere: all are private or reserved for tests.
"""

from __future__ import annotations

NODE = "node1"
NODE_ADDRESS = "192.168.77.2"

POD_GATEWAY = "10.244.0.1"
POD_RANGE = "10.244.0.0/22"
POD_PREFIX = 22

SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"

LB_RANGE = "10.250.0.0/24"
LB_POOL = tuple(f"10.250.0.{last}" for last in range(1, 251))

CLIENT_ADDRESS = "192.168.78.2"
CLIENT_GATEWAY = "192.168.78.1"

CLUSTER_DOMAIN = "cluster.local"
KUBELET_PORT = 10250

#: Worlds that can exist at one time on a machine.
SLOTS = 64


def link_addresses(slot: int) -> tuple[str, str]:
    """Return the (machine's, node's) ends of a world's /30 in 198.18.0.0/15 (RFC 2544: for tests)."""
    return f"198.18.{slot}.1", f"198.18.{slot}.2"
