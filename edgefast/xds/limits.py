"""Limits of the config stream: sizes and times that both ends share, with reasons.

In: nothing.
Out: constants; each name or comment states bytes, seconds or counts.
Must never: contain a limit that only one end uses.
"""

from __future__ import annotations

__all__ = [
    "HELD_LIMIT",
    "IDENTITY_LIMIT",
    "KEEPALIVE_MINIMUM",
    "KEEPALIVE_TIME",
    "KEEPALIVE_TIMEOUT",
    "MESSAGE_FILL",
    "MESSAGE_LIMIT",
    "REASON_LIMIT",
    "REFUSALS_LIMIT",
    "SERVER_KEEPALIVE_TIME",
    "SERVER_KEEPALIVE_TIMEOUT",
    "TABLE_BYTES",
    "TABLE_RESOURCES",
    "TEXT_LIMIT",
    "TROUBLES_LIMIT",
]

MIB = 1024 * 1024
#: A message is filled up to this; one resource that is larger has a message of its own. A proxy that reads nothing holds one
#: message in the controller: a thousand such proxies hold 128 MiB, not 1 GiB.
MESSAGE_FILL = 128 * 1024
#: What gRPC takes at either end: a resource of table.shards.RESOURCE_LIMIT and its envelope fit easily.
MESSAGE_LIMIT = 4 * MIB
#: Bytes of all resources of one table: what a proxy is ready to hold, far above 10,000 routes (some 30 MiB).
TABLE_BYTES = 256 * MIB
#: Resources of one table, and names that either end lists in one exchange.
TABLE_RESOURCES = 250_000
#: Characters of all names and versions that an opening lists: 250,000 of a hundred and more each. The server keeps them
#: until the opening is over; a proxy that holds more says nothing of it, and gets all of the table.
HELD_LIMIT = 32 * MIB
#: Bytes of a name, version, nonce or node id; Kubernetes names add up to less.
TEXT_LIMIT = 4096
#: Bytes of a node's id: a pod's name has at most 253.
IDENTITY_LIMIT = 253
#: Refusals that one answer tells, and characters of one reason: enough to act on, small enough to store.
REFUSALS_LIMIT = 100
REASON_LIMIT = 400
#: Proxy problems in one answer, each with a reason of that length: the first ones are enough for a diagnosis.
TROUBLES_LIMIT = 20
#: Seconds of silence after which a proxy or another replica pings the server, and until a missing answer ends the connection. Their sum,
#: one backoff and two tries to connect are less than 10 s: a proxy leaves a controller that is stopped for another replica in that time.
KEEPALIVE_TIME = 3
KEEPALIVE_TIMEOUT = 3
#: Seconds between pings that the server accepts (grpc.http2.min_ping_interval_without_data_ms). Faster ones end the connection.
KEEPALIVE_MINIMUM = 1
#: The same for the server, which detects lost proxies: this is not urgent.
SERVER_KEEPALIVE_TIME = 20
SERVER_KEEPALIVE_TIMEOUT = 10
