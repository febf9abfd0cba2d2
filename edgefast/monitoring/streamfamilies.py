"""What a proxy tells of connections and datagrams that it passes on (layer 4). proxyfamilies.py has them on the page.

In: nothing. Out: `LAYER4`, families of one cell each; STREAM_REFUSED begins the cells of one of them. Must never: tell anything
that a client sends.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family, count, now

__all__ = ["LAYER4", "STREAM_REFUSED"]

#: Cells that begin so are of one family: why connections and sessions were not served.
STREAM_REFUSED = "stream_refused_"


LAYER4 = (
    count(
        "stream_connections",
        "Forwarded connections of TCP listeners, and of TLS listeners after the ClientHello.",
        "stream_connections",
    ),
    now("stream_connections_active", "Of these, open connections."),
    count(
        "stream_received_bytes",
        "Bytes from clients of TCP, TLS and UDP listeners.",
        "stream_received_bytes",
        "bytes",
    ),
    count(
        "stream_sent_bytes",
        "Bytes to clients of TCP, TLS and UDP listeners.",
        "stream_sent_bytes",
        "bytes",
    ),
    Family(
        f"{PREFIX}stream_refused_total",
        "counter",
        "Refused connections, and datagrams without a session, by cause: a limit of the "
        "listener or of the client address, no PROXY protocol header, no route or backend "
        "weight, or no reachable backend.",
        ("reason",),
        cell=STREAM_REFUSED,
    ),
    count("stream_sessions", "Started UDP sessions.", "stream_sessions"),
    now("stream_sessions_active", "Of these, open sessions."),
    count("stream_datagrams_received", "Datagrams from clients.", "stream_datagrams_received"),
    count("stream_datagrams_sent", "Datagrams to clients.", "stream_datagrams_sent"),
    count(
        "stream_datagrams_dropped",
        "Dropped datagrams: no session for them, or the queue of a socket was full.",
        "stream_datagrams_dropped",
    ),
)
