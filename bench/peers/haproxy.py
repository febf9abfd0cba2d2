"""haproxy, tuned: one thread, `http-reuse always`; many routes through a map (a prefix tree).

In: a `Setup`. Out: haproxy.cfg, and routes.map for more than one route. The map makes the cost of
a match independent of the number of routes, as an experienced operator would have it.
Must never log to syslog: with logs on it writes JSON lines to its standard output, a file.
"""

from collections.abc import Iterator
from pathlib import Path

from bench.peers.peer import Peer, Setup, find_program, read_first_line
from bench.scenario import Scenario

LOG_FORMAT = (
    "log-format "
    r"{\"time\":\"%tr\",\"client\":\"%ci\",\"method\":\"%HM\",\"path\":\"%HU\","
    r"\"host\":\"%[var(txn.host),json(utf8s)]\",\"status\":%ST,\"sent\":%B,\"received\":%U,"
    r"\"duration\":%Ta,\"upstream\":\"%s\",\"upstream_time\":%Tr,"
    r"\"request_id\":\"%[var(txn.id)]\",\"agent\":\"%[var(txn.agent),json(utf8s)]\","
    r"\"forwarded\":\"-\",\"flags\":\"%tsc\"}"
)


class Haproxy(Peer):
    """Debian's haproxy."""

    name = "haproxy"

    def find_program(self) -> Path | None:
        """haproxy of the system."""
        return find_program("haproxy")

    def check_scenario(self, scenario: Scenario) -> str | None:
        """TCP and what is over it."""
        return "passes no datagrams on" if scenario.stream == "udp" else None

    def read_version(self) -> str:
        """As `haproxy -v` says."""
        return " ".join(read_first_line([str(self.find_program()), "-v"]).split()[:3])

    def render(self, setup: Setup) -> list[str]:
        """Write haproxy.cfg and the map."""
        config = setup.folder / "haproxy.cfg"
        lines = _render_stream(setup) if setup.scenario.stream else _render_lines(setup)
        config.write_text("".join(lines))
        if setup.scenario.routes > 1:
            with (setup.folder / "routes.map").open("w") as out:
                for route in setup.scenario.list_routes():
                    out.write(f"{route.host}{route.prefix} b{route.backend}\n")
        return [str(self.find_program()), "-db", "-f", str(config)]


def _render_stream(setup: Setup) -> Iterator[str]:
    """Connections passed on, by server name where they are TLS."""
    yield f"global\n  maxconn {setup.scenario.connections + 1024}\n  nbthread 1\n"
    yield "  no strict-limits\n  no log\ndefaults\n  mode tcp\n  timeout connect 5s\n"
    yield "  timeout client 600s\n  timeout server 600s\n"
    yield f"frontend f\n  bind 127.0.0.1:{setup.port}\n"
    if setup.scenario.stream == "tls":
        yield "  tcp-request inspect-delay 5s\n"
        yield "  tcp-request content accept if { req.ssl_hello_type 1 }\n"
        yield f"  use_backend b0 if {{ req.ssl_sni -i {setup.scenario.make_route(0).host} }}\n"
    else:
        yield "  default_backend b0\n"
    yield f"backend b0\n  server s1 127.0.0.1:{setup.origin_port}\n"


def _render_lines(setup: Setup) -> Iterator[str]:
    scenario = setup.scenario
    # Descriptors are counted for both sides; past the hard limit haproxy is told to go on.
    yield f"global\n  maxconn {scenario.connections + 1024}\n  nbthread 1\n  no strict-limits\n"
    if scenario.tls:
        yield "  ssl-default-bind-options ssl-min-ver TLSv1.2\n"
    yield "  log stdout format raw daemon info\n" if scenario.logs else "  no log\n"
    yield "defaults\n  mode http\n  timeout connect 5s\n  timeout client 600s\n"
    yield "  timeout server 15s\n  timeout http-keep-alive 600s\n  http-reuse always\n"
    if scenario.logs:
        yield f"  log global\n  {LOG_FORMAT}\n"
    crt = f" ssl crt {setup.certificate.both} alpn http/1.1" if scenario.tls else ""
    proto = " proto h2" if scenario.http2 else ""
    yield f"frontend f\n  bind 127.0.0.1:{setup.port}{crt}{proto}\n"
    if scenario.logs:
        yield "  http-request set-var(txn.host) req.hdr(host)\n"
        yield "  http-request set-var(txn.agent) req.hdr(user-agent)\n"
        yield "  http-request set-var(txn.id) uuid\n"
        yield "  http-request set-header X-Request-Id %[var(txn.id)]\n"
    else:
        yield "  http-request set-header X-Request-Id %[uuid]\n"
    yield "  http-request set-header X-Forwarded-For %[src]\n"
    yield f"  http-request set-header X-Forwarded-Proto {scenario.scheme}\n"
    yield "  http-request set-header X-Edge-Internal true\n"
    if not scenario.grpc:
        yield "  http-request set-header X-Edge-Expected-Rq-Timeout-Ms 15000\n"
    yield "  http-response set-header X-Edge-Upstream-Service-Time %Tr\n"
    yield "  http-response set-header Server haproxy\n"
    if scenario.routes > 1:
        yield f"  use_backend %[base,map_beg({setup.folder}/routes.map,nf)]\n"
    else:
        route = scenario.make_route(0)
        yield f"  acl h hdr(host) -i {route.host}\n  acl p path_beg {route.prefix}\n"
        yield "  use_backend b0 if h p\n  default_backend nf\n"
    for index in range(scenario.backends):
        proto = " proto h2" if scenario.http2_backends else ""
        yield f"backend b{index}\n  server s1 127.0.0.1:{setup.origin_port}{proto}\n"
    yield "backend nf\n  http-request return status 404\n"
