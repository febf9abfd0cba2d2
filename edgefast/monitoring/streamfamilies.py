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
        "Connections accepted to be passed on: of TCP listeners, and of TLS listeners once their name is known.",
        "stream_connections",
    ),
    now("stream_connections_active", "Of these, those open now."),
    count(
        "stream_received_bytes",
        "Bytes from clients of layer 4, over TCP and UDP.",
        "stream_received_bytes",
        "bytes",
    ),
    count(
        "stream_sent_bytes",
        "Bytes for clients of layer 4, over TCP and UDP.",
        "stream_sent_bytes",
        "bytes",
    ),
    Family(
        f"{PREFIX}stream_refused_total",
        "counter",
        "Connections, and datagrams without a session, that were not served, by why: a limit of the listener or of the client's "
        "address, no PROXY protocol header, no route or share, no backend that took it.",
        ("reason",),
        cell=STREAM_REFUSED,
    ),
    count("stream_sessions", "Sessions of UDP begun.", "stream_sessions"),
    now("stream_sessions_active", "Of these, those that are not over."),
    count("stream_datagrams_received", "Datagrams from clients.", "stream_datagrams_received"),
    count("stream_datagrams_sent", "Datagrams to clients.", "stream_datagrams_sent"),
    count(
        "stream_datagrams_dropped",
        "Datagrams that were not passed on: no session for them, or a socket's queue was full.",
        "stream_datagrams_dropped",
    ),
)
