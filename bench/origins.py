"""The backends of a run: C programs on the load CPU, one for each thing that proxies speak to them.

In: the run's folder. Out: their ports, and the certificate of whoever terminates TLS. Must never outlive the block.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.certificate import Certificate, make_certificate
from bench.native import find_tool
from bench.process import LOAD_CPU, start_pinned, stop_process, wait_line
from bench.scenario import Scenario

ORIGIN_START_SECONDS = 5.0


@dataclass(frozen=True)
class Origins:
    """Ports of 127.0.0.1."""

    http1: int
    http2: int
    tls: int  # the floor with TLS, in front of the first: for connections that are passed on
    udp: int
    loopbacks: int  # on all of 127.0.0.0/8: for backends of many endpoints
    certificate: Certificate

    def find(self, scenario: Scenario) -> int:
        """The one that a scenario's proxies are in front of."""
        if scenario.endpoints > 1:
            return self.loopbacks
        if scenario.stream == "udp":
            return self.udp
        if scenario.stream == "tls":
            return self.tls
        return self.http2 if scenario.http2_backends else self.http1


@contextmanager
def run_origins(folder: Path) -> Iterator[Origins]:
    """All of them."""
    certificate = make_certificate(folder)
    with ExitStack() as stack:

        def run(name: str, *more: str) -> int:
            return stack.enter_context(_run_origin(folder, name, *more))

        http1 = run("origin")
        yield Origins(
            http1=http1,
            http2=run("origin-h2"),
            tls=run("floor-tls", str(http1), str(certificate.cert), str(certificate.key)),
            udp=run("origin-udp"),
            loopbacks=run("origin-loopbacks"),
            certificate=certificate,
        )


@contextmanager
def _run_origin(folder: Path, name: str, *more: str) -> Iterator[int]:
    process = start_pinned([str(find_tool(name)), "0", *more], LOAD_CPU, folder, name)
    try:
        yield int(wait_line(folder / f"{name}.out", process, ORIGIN_START_SECONDS))
    finally:
        stop_process(process)
