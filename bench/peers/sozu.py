"""Sozu, the proxy of Clever Cloud that reconfigures without a restart: one worker.

In: a `Setup`. Out: sozu.toml. A response has a constant in place of the time of the backend, as with nghttpx.
"""

from collections.abc import Iterator
from pathlib import Path

from bench.newest import find_newest
from bench.peers.peer import Peer, Setup, read_first_line
from bench.scenario import Scenario

REQUEST_HEADERS = {"X-Edge-Internal": "true", "X-Edge-Expected-Rq-Timeout-Ms": "15000"}
RESPONSE_HEADERS = {"X-Edge-Upstream-Service-Time": "0", "Server": "sozu"}


class Sozu(Peer):
    """A main process and one worker."""

    name = "sozu"

    def find_program(self) -> Path | None:
        """The program that `make bench` builds."""
        return find_newest("sozu")

    def read_version(self) -> str:
        """Return the first version that `sozu --version` prints."""
        return read_first_line([str(self.find_program()), "--version"])

    def check_scenario(self, scenario: Scenario) -> str | None:
        """HTTP/1.1 in plain text or TLS, and TCP."""
        if scenario.stream in ("tls", "udp"):
            return "is measured for HTTP and TCP"
        if scenario.http2 and not scenario.tls:
            return "speaks HTTP/2 over TLS alone"
        return "its access log has another form" if scenario.logs else None

    def render(self, setup: Setup) -> list[str]:
        """Write sozu.toml."""
        config = setup.folder / "sozu.toml"
        config.write_text("".join(f"{line}\n" for line in _render_lines(setup)))
        return [str(self.find_program()), "start", "-c", str(config)]


def _render_lines(setup: Setup) -> Iterator[str]:
    scenario, address = setup.scenario, f'"127.0.0.1:{setup.port}"'
    most = 2 * scenario.connections + 1024
    yield f'command_socket = "{setup.folder}/sozu.sock"\nlog_level = "error"\nlog_target = "stdout"'
    yield f"worker_count = 1\nworker_automatic_restart = false\nmax_connections = {most}"
    yield f"max_buffers = {most}\nbuffer_size = 16393\nhandle_process_affinity = false"
    yield "front_timeout = 600\nback_timeout = 15\nconnect_timeout = 5\nactivate_listeners = true"
    protocol = scenario.stream or scenario.scheme
    yield f'[[listeners]]\naddress = {address}\nprotocol = "{protocol}"'
    for index in range(scenario.backends):
        yield f'[clusters.b{index}]\nprotocol = "{"tcp" if scenario.stream else "http"}"'
        yield 'load_balancing = "ROUND_ROBIN"\nfrontends = ['
        if scenario.stream:
            yield f"  {{ address = {address} }},"
        else:
            for route in scenario.list_routes():
                if route.backend == index:
                    yield f"  {_render_frontend(setup, route.host, route.prefix)},"
        yield f']\nbackends = [{{ address = "127.0.0.1:{setup.origin_port}" }}]'


def _render_frontend(setup: Setup, host: str, prefix: str) -> str:
    parts = [f'address = "127.0.0.1:{setup.port}"', f'hostname = "{host}"', f'path = "{prefix}"']
    if setup.scenario.tls:
        pair = setup.certificate
        parts += [f'certificate = "{pair.cert}"', f'key = "{pair.key}"']
    edits = ", ".join(
        f'{{ position = "{position}", key = "{key}", value = "{value}" }}'
        for position, headers in (("request", REQUEST_HEADERS), ("response", RESPONSE_HEADERS))
        for key, value in headers.items()
    )
    return f"{{ {', '.join([*parts, f'headers = [{edits}]'])} }}"
