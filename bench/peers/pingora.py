"""Pingora: a proxy of some hundred lines on Cloudflare's library (bench/native/pingora).

In: a `Setup`. Out: routes.txt and a command line. It has no access log and no limits of its own: a bound of the library, not of a product.
"""

from pathlib import Path

from bench.newest import find_newest
from bench.peers.peer import Peer, Setup
from bench.scenario import Scenario


class Pingora(Peer):
    """One thread of Pingora, with OpenSSL."""

    name = "pingora"

    def find_program(self) -> Path | None:
        """The program that `make bench` builds."""
        return find_newest("pingora")

    def read_version(self) -> str:
        """The version that the manifest names."""
        return "pingora 0.9"

    def check_scenario(self, scenario: Scenario) -> str | None:
        """HTTP without an access log."""
        if scenario.stream:
            return "speaks HTTP alone"
        if scenario.http2:
            return "does not answer HTTP/2 in plain text here"
        return "has no access log" if scenario.logs else None

    def render(self, setup: Setup) -> list[str]:
        """Write the routes."""
        scenario, routes = setup.scenario, setup.folder / "routes.txt"
        with routes.open("w") as out:
            for route in scenario.list_routes():
                out.write(f"{route.host} {route.prefix} 127.0.0.1:{setup.origin_port}\n")
        protocols = f"{1 + scenario.http2}{1 + scenario.http2_backends}"
        argv = [str(self.find_program()), str(setup.port), str(routes), protocols]
        if scenario.tls:
            argv += [str(setup.certificate.cert), str(setup.certificate.key)]
        return argv
