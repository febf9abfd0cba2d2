"""Runs one bounded load on the load CPU: bench/native/load.c, load_h2.c for HTTP/2, load_udp.c, or where TLS is spoken handshakes.c and wrk.

In: a `Load` and the target. Out: a `LoadResult` in the same shape from all. load.c serves every
row it can, so that rows compare; new TLS connections are made by handshakes.c, which alone can resume, kept ones
by wrk (README.md has the measurement that chose load.c). Must never run without an end: seconds and a deadline are always given.
"""

import json
import math
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.native import SOURCES, find_tool
from bench.peers.peer import find_program
from bench.process import LOAD_CPU
from bench.scenario import Scenario

DEADLINE_SECONDS = 20.0
KEPT = 64  # connections of the plain row
# One cipher and one group for every proxy: wrk is the side that proposes.
OPENSSL_CONF = """\
openssl_conf = init
[init]
ssl_conf = modules
[modules]
system_default = client
[client]
MinProtocol = TLSv1.3
Ciphersuites = TLS_AES_128_GCM_SHA256
Groups = X25519
"""
# The headers that load.c sends, word for word.
HEADERS = (
    "User-Agent: edgefast-bench/1.0 (closed loop)",
    "Accept: text/html,application/json;q=0.9,*/*;q=0.8",
    "Accept-Encoding: gzip, deflate, br",
    "Accept-Language: en-US,en;q=0.5",
    "Cookie: session=0123456789abcdef0123456789abcdef",
)


@dataclass(frozen=True)
class Load:
    """What one row sends. rate: requests/s of the open loop, None: closed loop."""

    connections: int = 64
    close: bool = False
    body: int = 0
    suffix: str = ""
    rate: int | None = None
    users: int = 0  # X-User-Id: one of so many values
    refusals: bool = False  # 429 is an answer
    resume: bool = False  # a new TLS connection resumes the session of one before
    streams: int = 0  # open on each connection of HTTP/2; without it, that load is KEPT connections
    header: str = ""  # one line more
    encoding: str = ""  # the only one that is accepted
    beside: bool = False  # a client that reads nothing and a slow one beside it


@dataclass(frozen=True)
class LoadResult:
    """Whole answers (and how many of them were 429), everything else, and latencies in microseconds."""

    requests: int
    refused: int
    errors: int
    seconds: float
    unsent: int
    p50: float
    p99: float
    p999: float
    cut: int = 0  # times that a client beside the load was ended
    most: float = 0.0  # the longest; wrk does not say


def make_command(load: Load, scenario: Scenario, port: int, seconds: float) -> list[str]:
    """Command line of load.c for a scenario: random over all of its routes."""
    argv = [str(find_tool("load")), "--port", str(port), "--seconds", str(seconds)]
    argv += ["--connections", str(KEPT if load.streams else load.connections)]
    if scenario.spread == "paths":
        argv += ["--paths", str(scenario.routes)]
    else:
        argv += ["--hosts", str(scenario.routes)]
    if load.close:
        argv.append("--close")
    if load.body:
        argv += ["--body", str(load.body)]
    if load.suffix:
        argv += ["--suffix", load.suffix]
    if load.users:
        argv += ["--users", str(load.users)]
    if load.refusals:
        argv.append("--refusals")
    if load.header:
        argv += ["--header", load.header]
    if load.encoding:
        argv += ["--encoding", load.encoding]
    if load.rate:
        argv += ["--rate", str(load.rate)]
    return ["taskset", "-c", str(LOAD_CPU), *argv]


def make_wrk_command(load: Load, port: int, seconds: float, scheme: str) -> list[str]:
    """Command line of wrk; it knows whole seconds and one host."""
    wrk = find_program("wrk")
    if wrk is None:
        raise FileNotFoundError("wrk is not installed: it generates the TLS rows")
    argv = [str(wrk), "-t1", f"-c{load.connections}", f"-d{math.ceil(seconds)}", "--timeout", "5"]
    argv += ["-s", str(SOURCES / "done.lua"), "-H", "Host: www-0.example.com"]
    for header in HEADERS + (("Connection: close",) if load.close else ()):
        argv += ["-H", header]
    return ["taskset", "-c", str(LOAD_CPU), *argv, f"{scheme}://localhost:{port}/get"]


def make_handshakes_command(load: Load, port: int, seconds: float) -> list[str]:
    """Command line of handshakes.c."""
    argv = [str(find_tool("handshakes")), "--port", str(port), "--seconds", str(seconds)]
    argv += ["--connections", str(load.connections)] + ["--resume"] * load.resume
    return ["taskset", "-c", str(LOAD_CPU), *argv]


def make_http2_command(load: Load, scenario: Scenario, port: int, seconds: float) -> list[str]:
    """Command line of load_h2.c."""
    argv = [str(find_tool("load-h2")), "--port", str(port), "--seconds", str(seconds)]
    argv += ["--connections", str(load.connections), "--streams", str(load.streams)]
    argv += ["--grpc"] * scenario.grpc + ["--beside"] * load.beside
    return ["taskset", "-c", str(LOAD_CPU), *argv]


def make_udp_command(load: Load, port: int, seconds: float) -> list[str]:
    """Command line of load_udp.c."""
    argv = [str(find_tool("load-udp")), "--port", str(port), "--seconds", str(seconds)]
    argv += ["--connections", str(load.connections), "--bytes", str(load.body)]
    return ["taskset", "-c", str(LOAD_CPU), *argv]


def run_load(load: Load, scenario: Scenario, port: int, seconds: float, folder: Path) -> LoadResult:
    """Generate for `seconds`; folder takes wrk's OpenSSL settings."""
    environment = dict(os.environ)
    if scenario.stream == "udp":
        argv = make_udp_command(load, port, seconds)
    elif scenario.tls_clients and load.close:
        argv = make_handshakes_command(load, port, seconds)
    elif scenario.tls:
        settings = folder / "openssl.cnf"
        settings.write_text(OPENSSL_CONF)
        environment["OPENSSL_CONF"] = str(settings)
        argv = make_wrk_command(load, port, seconds, scenario.scheme)
    elif scenario.http2:
        argv = make_http2_command(load, scenario, port, seconds)
    else:
        argv = make_command(load, scenario, port, seconds)
    done = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        check=True,
        env=environment,
        timeout=seconds + DEADLINE_SECONDS,
    )
    return decode_result(done.stdout)


def decode_result(output: bytes) -> LoadResult:
    """The JSON object in the last line of either generator's output."""
    result = json.loads(output.strip().splitlines()[-1])
    latency = result["latency_us"]
    return LoadResult(
        requests=result["requests"],
        refused=result.get("refused", 0),  # wrk knows none
        errors=result["errors"],
        seconds=result["seconds"],
        unsent=result["unsent"],
        p50=latency["p50"],
        p99=latency["p99"],
        p999=latency["p999"],
        cut=result.get("cut", 0),
        most=latency.get("max", 0.0),
    )
