"""Clients of UDP with link-local addresses: the same address and port on two links are two clients."""

from __future__ import annotations

import socket

from core.apart import apart
from core.links import CLIENT, LINKS, SERVER, scope_of
from core.stream.datagrams import ask, backend
from core.stream.streams import one_cluster, stream_fleet, stream_listener
from core.world import World


@apart(links=True)
async def test_a_client_on_another_link_is_another_client(world: World) -> None:
    there = await backend(world)
    world.apply(stream_fleet(stream_listener(protocol="UDP"), one_cluster(there.port)))
    port = await world.listen_datagrams(host="::")
    clients = []
    for link in LINKS:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind((CLIENT, 6000, 0, scope_of(link)))
        sock.connect((SERVER, port, 0, scope_of(link)))
        world.hold(sock)
        clients.append(sock)
    for turn in (b"1", b"2"):
        for number, sock in enumerate(clients):
            word = b"link %d %b" % (number, turn)
            assert await ask(world, sock, word) == word  # on the link that was asked on
    assert len({addr for _, addr in there.got}) == 2, "a session for each"
