"""nghttpx, the proxy of libnghttp2: in HTTP/2's rows alone.

In: a `Setup`. Out: a command line. Debian's has no mruby: it cannot make a request id of each request, so all have the same one, nor
answer 404 by itself. It does less than the others; its figure is a bound, not a goal. Must never log.
"""

from pathlib import Path

from bench.peers.peer import Peer, Setup, find_program, read_first_line
from bench.scenario import Scenario

REQUEST_ID = "0c0a1a2e-5c9e-4d3b-9d7a-2b9a4c1f6e58"


class Nghttpx(Peer):
    """Debian's nghttpx."""

    name = "nghttpx"
    routes = False

    def find_program(self) -> Path | None:
        """nghttpx of the system."""
        return find_program("nghttpx")

    def read_version(self) -> str:
        """As `nghttpx --version` says."""
        return read_first_line([str(self.find_program()), "--version"])

    def check_scenario(self, scenario: Scenario) -> str | None:
        """One route, where clients speak HTTP/2."""
        return None if scenario.http2 else "measured where clients speak HTTP/2"

    def render(self, setup: Setup) -> list[str]:
        """Nothing to write."""
        scenario = setup.scenario
        route = scenario.make_route(0)
        proto = ";proto=h2" if scenario.http2_backends else ""
        backend = f"127.0.0.1,{setup.origin_port}"
        argv = [str(self.find_program()), "--conf=/dev/null", "--workers=1", "--no-via"]
        argv += [f"--frontend=127.0.0.1,{setup.port};no-tls"]
        argv += [f"--backend={backend};{route.host}{route.prefix}*{proto}"]
        argv += [f"--backend={backend};{proto}"]
        argv += ["--add-x-forwarded-for", "--backend-read-timeout=15s"]
        argv += ["--frontend-read-timeout=600s", "--frontend-keep-alive-timeout=600s"]
        headers = [f"x-request-id: {REQUEST_ID}", "x-edge-internal: true"]
        headers += ["x-edge-expected-rq-timeout-ms: 15000"] * (not scenario.grpc)
        argv += [f"--add-request-header={header}" for header in headers]
        argv.append("--add-response-header=x-edge-upstream-service-time: 0")
        return [*argv, f"--errorlog-file={setup.folder}/nghttpx.log", "--log-level=FATAL"]
