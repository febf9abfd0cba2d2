"""The floods row: what others feel while a client sends passwords or tokens as fast as it is let.

In: nothing but the bench. Out: a `Table` with a line for each flood. A round is the load alone, the load under a flood, and the load under as many requests a second
that no route takes (404): what any flood costs. All against one process; ratios are of one round. The load is an open loop, so that a proxy that stands still is
charged for it. Must never count what the flooder asks for.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median

from bench import credentials
from bench.field import Bench, start_peer, stop_peer
from bench.flooder import pack_requests
from bench.generator import Load, LoadResult, run_load
from bench.peers.flooded import FloodedEdgefast
from bench.peers.peer import Running
from bench.process import LOAD_CPU, read_cpu_seconds, stop_process
from bench.scenario import Scenario
from bench.table import Table

RATE = 2000
HEAD_START = 0.3  # seconds that the flood has before the load begins
DISTINCT = 512  # requests of a flood; of tokens that are good, more than are remembered
MANY = 5000
PLAIN = ("nowhere", "denied")  # nothing is verified
_NOBODY = "x"


@dataclass(frozen=True)
class Flood:
    """Requests of one kind: where to, and what stands in Authorization of number n."""

    what: str
    kind: str
    value: Callable[[int], str]
    count: int = DISTINCT


def _forged(alg: str) -> Callable[[int], str]:
    made = credentials.make_token(alg, "ann")
    head, _, signature = made.rpartition(".")
    return lambda n: f"Bearer {head}.{signature[:8]}{n:08d}{signature[16:]}"


def list_floods() -> dict[str, Flood]:
    """All of them; makes their keys."""
    token, giant = credentials.make_token, credentials.make_giant()
    floods = {
        "nowhere": Flood("no route takes it: 404", "nowhere", lambda n: _NOBODY),
        "denied": Flood("an address that is not allowed: 403", "denied", lambda n: _NOBODY),
        "bcrypt": Flood("wrong passwords, bcrypt of cost 10", "bcrypt", lambda n: credentials.make_basic(f"no{n}")),
        "apr1": Flood("wrong passwords, $apr1$", "apr1", lambda n: credentials.make_basic(f"no{n}")),
        "known": Flood("one good token", "tokens", _one(f"Bearer {token('ES256', 'ann')}")),
        "good": Flood("good tokens, more than are remembered (ES256)", "tokens", lambda n: f"Bearer {token('ES256', f'u{n}')}", MANY),
        "good-ES384": Flood("good tokens of ES384", "tokens", lambda n: f"Bearer {token('ES384', f'u{n}')}", MANY),
        "expired": Flood("tokens that have expired", "tokens", lambda n: f"Bearer {token('ES256', f'u{n}', seconds=-600)}"),
        "kid": Flood("tokens of a key that nobody has", "tokens", lambda n: f"Bearer {token('ES256', 'ann', kid=f'k{n}')}"),
        "kid-fetched": Flood("the same where keys are fetched", "fetched", lambda n: f"Bearer {token('ES256', 'ann', kid=f'k{n}')}"),
        "giant": Flood("tokens of 100 kB", "tokens", _one(f"Bearer {giant}"), 1),
    }  # fmt: skip
    for alg in credentials.ALGORITHMS:
        floods[f"forged-{alg}"] = Flood(f"forged tokens, {alg}", "tokens", _forged(alg))
    return floods


def _one(value: str) -> Callable[[int], str]:
    return lambda n: value


@dataclass(frozen=True)
class Flooded:
    """The load under a flood, what that was, and of the proxy's CPU how much there was."""

    load: LoadResult
    rate: float
    answers: dict[str, int]
    busy: float


@dataclass(frozen=True)
class Round:
    """One flood."""

    alone: LoadResult
    under: Flooded
    plain: Flooded


@contextmanager
def run_issuer() -> Iterator[int]:
    """Publishes keys; yields its port."""
    keys = credentials.make_key_set().encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(keys)))
            self.end_headers()
            self.wfile.write(keys)

        def log_message(self, format: str, *args: object) -> None:
            """Nowhere."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def measure_floods(bench: Bench, name: str, title: str) -> Table:
    """Every flood, against edgefast."""
    header = [
        "flood",
        "p99 us alone",
        "under it",
        "under / alone",
        "under as many 404s / alone",
        "flood / 404s",
    ]
    header += ["max us alone", "under it", "flood's requests/s", "of CPU", "answers", "errors"]
    table = Table(name, title, header)
    floods = list_floods()
    with run_issuer() as port:
        peer = FloodedEdgefast(port)
        if all(one.name != peer.name for one in bench.peers):
            table.add_missing(peer.name, "not asked for")
            return table
        running = start_peer(bench, peer, Scenario(), peer.name)
        try:
            run_load(Load(rate=RATE), Scenario(), running.setup.port, bench.seconds, bench.folder)
            for flood, one in floods.items():
                _pack(bench, flood, one)
            _pack(bench, "nowhere", floods["nowhere"])
            taken: dict[str, list[Round]] = {flood: [] for flood in floods}
            for _ in range(bench.rounds):
                for flood in floods:
                    taken[flood].append(_take(bench, running, flood))
        finally:
            stop_peer(running)
    for flood, rounds in taken.items():
        _add_line(table, flood, rounds)
    table.notes += [f"{flood}: {one.what}." for flood, one in floods.items()]
    table.notes.append(
        f"{RATE} requests/s of others on the same port; the flooder has what they leave of its CPU (SCHED_IDLE), 16 connections, "
        "and another address. p99 and ratios are medians of rounds, max the largest of all."
    )
    return table


def _pack(bench: Bench, name: str, flood: Flood) -> None:
    requests = [
        f"GET /flood/{flood.kind} HTTP/1.1\r\nHost: www-0.example.com\r\nAuthorization: {flood.value(n)}\r\n\r\n".encode()
        for n in range(flood.count)
    ]
    (bench.folder / f"flood-{name}").write_bytes(pack_requests(requests))


def _take(bench: Bench, running: Running, flood: str) -> Round:
    alone = run_load(Load(rate=RATE), Scenario(), running.setup.port, bench.seconds, bench.folder)
    under = _flood(bench, running, flood, 0.0)
    plain = _flood(bench, running, "nowhere", under.rate)
    bench.say(
        f"  {flood}: p99 {alone.p99:.0f}, {under.load.p99:.0f} and with 404s {plain.load.p99:.0f} us, max {alone.most:.0f} {under.load.most:.0f} {plain.load.most:.0f}, "
        f"{under.rate:.0f}/s ({plain.rate:.0f}/s), CPU {under.busy:.0%} ({plain.busy:.0%}) {under.answers}"
    )
    return Round(alone, under, plain)


def _flood(bench: Bench, running: Running, flood: str, rate: float) -> Flooded:
    seconds = bench.seconds + 4 * HEAD_START
    argv = ["taskset", "-c", str(LOAD_CPU), sys.executable, "-m", "bench.flooder"]
    argv += ["--port", str(running.setup.port), "--file", str(bench.folder / f"flood-{flood}")]
    argv += ["--seconds", str(seconds), "--rate", str(rate)]
    pids = running.pids()
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as flooder:
        try:
            assert flooder.stdout
            flooder.stdout.readline()  # it begins
            time.sleep(HEAD_START)
            before = sum(read_cpu_seconds(pids))
            load = run_load(
                Load(rate=RATE), Scenario(), running.setup.port, bench.seconds, bench.folder
            )
            busy = (sum(read_cpu_seconds(pids)) - before) / bench.seconds
            output, _ = flooder.communicate(timeout=seconds + 10)
        finally:
            stop_process(flooder)
    found = json.loads(output)
    answers: dict[str, int] = found["answers"]
    return Flooded(load, sum(answers.values()) / seconds, answers, busy)


def _add_line(table: Table, flood: str, rounds: list[Round]) -> None:
    shares = [one.under.load.p99 / one.alone.p99 for one in rounds if one.alone.p99]
    plain = [one.plain.load.p99 / one.alone.p99 for one in rounds if one.alone.p99]
    of_plain = [one.under.load.p99 / one.plain.load.p99 for one in rounds if one.plain.load.p99]
    values = table.values.setdefault("edgefast", {"p99_share": 0.0, "of_plain": 0.0})
    if shares:
        values["p99_share"] = max(values["p99_share"], median(shares))
    if of_plain and flood not in PLAIN:
        values["of_plain"] = max(values["of_plain"], median(of_plain))
    statuses = {status for one in rounds for status in one.under.answers}
    table.lines.append(
        [
            flood,
            f"{median(one.alone.p99 for one in rounds):.0f}",
            f"{median(one.under.load.p99 for one in rounds):.0f}",
            f"{median(shares):.2f}" if shares else "-",
            f"{median(plain):.2f}" if plain else "-",
            f"{median(of_plain):.2f}" if of_plain else "-",
            f"{max(one.alone.most for one in rounds):.0f}",
            f"{max(one.under.load.most for one in rounds):.0f}",
            f"{median(one.under.rate for one in rounds):.0f}",
            f"{median(one.under.busy for one in rounds):.0%}",
            " ".join(sorted(statuses)),
            str(sum(one.alone.errors + one.under.load.errors for one in rounds)),
        ]
    )
