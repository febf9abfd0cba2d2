"""The floor: bench/native/floor.c, the least work a proxy can do with the readiness API.

In: a `Setup`. Out: a command line; it has no configuration. Must never be read as a competitor:
it routes nothing and checks nothing, so it is measured only where there is one route, without
logs. With TLS it is the same source on the system's OpenSSL.
"""

from pathlib import Path

from bench.native import find_tool
from bench.peers.peer import Peer, Setup
from bench.scenario import Scenario


class Floor(Peer):
    """C, epoll, four system calls per request."""

    name = "floor"
    routes = False

    def find_program(self) -> Path | None:
        """Always there once the tools are built."""
        path = find_tool("floor")
        return path if path.exists() else None

    def read_version(self) -> str:
        """It is part of this tree."""
        return "floor"

    def adapt(self, scenario: Scenario) -> Scenario:
        """It speaks HTTP/1.1: rows of HTTP/2 are read against what it does there."""
        return scenario.make_http1()

    def check_scenario(self, scenario: Scenario) -> str | None:
        """Only the plain scenario."""
        if scenario.stream:
            return "speaks HTTP alone"
        if scenario.routes > 1:
            return "has no routing"
        return "has no access log" if scenario.logs else None

    def render(self, setup: Setup) -> list[str]:
        """Nothing to write."""
        argv = [str(setup.port), str(setup.origin_port)]
        if setup.scenario.tls:
            pair = setup.certificate
            return [str(find_tool("floor-tls")), *argv, str(pair.cert), str(pair.key)]
        return [str(find_tool("floor")), *argv]
