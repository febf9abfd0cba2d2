"""The product's own client against the server: five that come back, sixty at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controller.xds_server.refusal import Refused as CallRefused
from edgefast.table.format import table_format
from edgefast.table.shards import Shards
from edgefast.xds.client import XdsClient
from edgefast.xds.credentials import Credentials
from edgefast.xds.messages import Node
from edgefast.xds.rejections import Refused
from edgefast.xds.ticket_secrets import TicketSecrets
from tests.controller.waiting import running, until
from tests.controller.xds_server.loopback import (
    FLEET,
    ONE,
    TWO,
    Loopback,
    client_pair,
    pod,
    shards_of,
)

pytestmark = pytest.mark.wire


class Agent:
    """The product's own client with something to take tables in."""

    def __init__(
        self, loopback: Loopback, number: int, pair: Any = None, *, tickets: bool = False
    ) -> None:
        self.tables: list[Shards] = []
        self.given: list[TicketSecrets] = []
        self.tables_before: list[int] = []  # how many there were when keys came
        self.refuse: Sequence[Refused] = ()
        pair = pair or client_pair(loopback.ring)
        self._credentials = Credentials(
            ca=loopback.ring.bundle.encode(),
            certificate=pair.certificate_pem.encode(),
            key=pair.key_pem.encode(),
        )
        self.client = XdsClient(
            str(loopback.certificates),
            lambda: self._credentials,
            Node(pod(number), (table_format(),), tickets=tickets),
            self._take,
            server_name="edge-gateway",
            on_tickets=self._take_keys,
        )

    def _take_keys(self, given: TicketSecrets) -> None:
        self.given.append(given)
        self.tables_before.append(len(self.tables))

    async def _take(self, table: Shards) -> Sequence[Refused]:
        self.tables.append(table)
        return self.refuse

    @property
    def version(self) -> str:
        return self.tables[-1].version if self.tables else ""


async def test_real_clients_follow_and_come_back(loopback: Loopback) -> None:
    loopback.fleets.publish(FLEET, ONE)
    agents = [Agent(loopback, number) for number in range(5)]
    async with running(*(agent.client.run() for agent in agents)):
        await until(lambda: all(agent.version == ONE.version for agent in agents))
        agents[0].refuse = (Refused("virtual_host", "a", "no"),)
        loopback.fleets.publish(FLEET, TWO)
        await until(
            lambda: {ack.version for ack in loopback.fleets.acks(FLEET).values()} == {TWO.version}
        )
        assert loopback.fleets.acks(FLEET)[pod(0)].refused == agents[0].refuse
        assert len(loopback.fleets.acks(FLEET)) == 5
        # All streams end; the clients come back and ask for what differs, which is nothing.
        sent = loopback.server.counts.resources
        for stream in tuple(loopback.server._streams):
            stream.end(CallRefused("removed", "UNAVAILABLE", "for a test"))
        await until(lambda: loopback.server.counts.opened == 10)
        loopback.fleets.publish(FLEET, ONE)
        await until(lambda: all(agent.version == ONE.version for agent in agents))
        # One resource for the four and two for the one that said what is not in force.
        assert loopback.server.counts.resources - sent <= 5 + 1


async def test_keys_of_session_tickets_reach_all_that_take_them_and_are_no_table(
    loopback: Loopback,
) -> None:
    first = TicketSecrets(b"", b"c" * 32, b"n" * 32)
    second = TicketSecrets(b"c" * 32, b"n" * 32, b"o" * 32)
    fleets = loopback.fleets
    given = first
    fleets.tickets = lambda fleet: given if fleet == FLEET else None
    fleets.publish(FLEET, ONE)
    agents = [Agent(loopback, number, tickets=number != 2) for number in range(3)]
    async with running(*(agent.client.run() for agent in agents)):
        await until(lambda: all(agent.version == ONE.version for agent in agents))
        assert [agent.given for agent in agents] == [[first], [first], []]
        assert agents[0].tables_before == [0]  # handshakes begin with the first table
        given = second
        fleets.renew_tickets()
        await until(lambda: all(agent.given == [first, second] for agent in agents[:2]))
        fleets.renew_tickets()  # nothing is new
        fleets.publish(FLEET, TWO)
        await until(lambda: all(agent.version == TWO.version for agent in agents))
        assert [len(agent.given) for agent in agents] == [2, 2, 0]
        assert loopback.server.counts.nacks == 0
        assert all(len(agent.tables) == 2 for agent in agents)


async def test_sixty_proxies_at_once(loopback: Loopback) -> None:
    """The shape of the thousand of tests/cluster: everyone gets everything, and bytes are made once."""
    names = {f"host-{i:05}": "x" * 500 for i in range(400)}
    fleets = loopback.fleets
    fleets.publish(FLEET, shards_of(names))
    pair = client_pair(loopback.ring)
    agents = [Agent(loopback, number, pair) for number in range(60)]
    async with running(*(agent.client.run() for agent in agents)):

        def all_at(version: str) -> bool:
            acks = fleets.acks(FLEET)
            return len(acks) == 60 and {ack.version for ack in acks.values()} == {version}

        await until(lambda: all_at(fleets.version(FLEET)), 40)
        for i in range(5):
            fleets.publish(FLEET, shards_of({**names, "host-00000": str(i)}))
            await until(lambda: all_at(fleets.version(FLEET)), 20)
        assert fleets.find(FLEET).history.encoded == 400 + 5
        assert loopback.server.counts.resources == 60 * (400 + 5)
