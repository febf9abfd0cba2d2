"""The limits row: what a limit costs a request, with Redis and with shared memory, in one alternating run.

In: the product, a redis-server beside the generator. Out: a `Table`. For each store one process serves a plain route, one
counter, a counter for each of 100,000 values, and a limit that is used up; all requests are the same but for the path. The
open loop is at 30 % of the plain route's requests/s in the same run. Goals are read from the ratios within a round.
Must never compare a run in which the store failed: that answers 500, which is an error.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from statistics import median

from bench.field import Bench, Entrant, Variant, start_peer, stop_peer
from bench.generator import Load, LoadResult, run_load
from bench.measure import IDLE_NEEDED, WARM_SECONDS, Sample, take_sample
from bench.peers.limited import LimitedEdgefast
from bench.peers.peer import PeerUnavailable
from bench.probe import ProbeFailed
from bench.scenario import Scenario
from bench.store import Store, run_store
from bench.table import Table, show_spread

USERS = 100_000
STORES = ("redis", "memory")
PATHS = {
    "plain": "no limit",
    "hot": "one counter, under the limit",
    "users": f"{USERS:,} counters, under the limit",
    "spent": "over the limit: 429",
}
OPEN_LOAD = 0.3


@dataclass(frozen=True)
class Taken:
    """A sample, with what the store did meanwhile."""

    sample: Sample
    store_us: float  # CPU of the store per request
    calls: float  # of the script, per request


Samples = dict[tuple[str, str], list[Taken]]


def measure_limits(bench: Bench, name: str, title: str) -> Table:
    """Rounds over all stores and paths, then rounds of the open loop."""
    header = ["store", "route", "CPU us/request", "CPU plain / here", "requests/s", "of plain's"]
    header += ["load CPU idle", "store us/request", "script calls/request", "p50 us", "p99 us"]
    header += ["p50 added, open loop", "errors", "unsent"]
    table = Table(name, title, header)
    if not any(peer.name == LimitedEdgefast.name for peer in bench.peers):
        table.notes.append("the product alone has this row, and was not asked for.")
        return table
    try:
        with _open_stores(bench) as (entrants, server):
            samples = _take_rounds(bench, entrants, server)
            rate = _choose_rate(samples)
            loops = _take_open_loops(bench, entrants, rate)
    except (PeerUnavailable, ProbeFailed) as error:
        table.add_missing("edgefast", str(error))
        return table
    for store in STORES:
        for path in PATHS:
            _add_line(table, store, path, samples, loops)
    _add_notes(table, samples, rate)
    return table


@contextmanager
def _open_stores(bench: Bench) -> Iterator[tuple[dict[str, Entrant], Store]]:
    with ExitStack() as stack:
        server = stack.enter_context(run_store(bench.folder))
        entrants = {}
        for store in STORES:
            peer = LimitedEdgefast(server.port if store == "redis" else None)
            running = start_peer(bench, peer, Scenario(), f"limits-{store}")
            stack.callback(stop_peer, running)
            entrants[store] = Entrant(store, Variant("", Scenario()), running)
        yield entrants, server


def _make_load(path: str) -> Load:
    return Load(suffix=f"/{path}", users=USERS, refusals=path == "spent")


def _take(bench: Bench, entrant: Entrant, server: Store, path: str, seconds: float) -> Taken:
    cpu, calls = server.read_cpu(), server.count_calls()
    sample = take_sample(bench, entrant, _make_load(path), seconds)
    requests = max(sample.load.requests, 1)
    return Taken(
        sample=sample,
        store_us=(server.read_cpu() - cpu) * 1e6 / requests,
        calls=(server.count_calls() - calls) / requests,
    )


def _rotate(items: list[tuple[str, str]], by: int) -> list[tuple[str, str]]:
    by %= len(items)
    return [*items[by:], *items[:by]]


def _take_rounds(bench: Bench, entrants: Mapping[str, Entrant], server: Store) -> Samples:
    turns = [(store, path) for path in PATHS for store in STORES]
    samples: Samples = {turn: [] for turn in turns}
    for store, path in turns:
        # Every counter is made before it is measured, as it would be in a window that lasts.
        seconds = 4 * WARM_SECONDS if path == "users" else WARM_SECONDS
        _take(bench, entrants[store], server, path, seconds)
    for number in range(bench.rounds):
        for store, path in _rotate(turns, number):
            taken = _take(bench, entrants[store], server, path, bench.seconds)
            samples[store, path].append(taken)
            bench.say(
                f"  {store} {path}: {taken.sample.cpu_us:.1f} us/request, "
                f"{taken.sample.rps:.0f}/s, load CPU idle {taken.sample.load_idle:.0%}, "
                f"script calls {taken.calls:.3f}, errors {taken.sample.load.errors}"
            )
    return samples


def _choose_rate(samples: Samples) -> int:
    plain = [taken.sample.rps for store in STORES for taken in samples[store, "plain"]]
    return round(median(plain) * OPEN_LOAD)


def _take_open_loops(
    bench: Bench, entrants: Mapping[str, Entrant], rate: int
) -> dict[tuple[str, str], list[LoadResult]]:
    turns = [(store, path) for path in ("plain", "hot", "users") for store in STORES]
    results: dict[tuple[str, str], list[LoadResult]] = {turn: [] for turn in turns}
    for number in range(bench.rounds):
        for store, path in _rotate(turns, number):
            running = entrants[store].running
            load = replace(_make_load(path), rate=rate)
            result = run_load(load, Scenario(), running.setup.port, bench.seconds, bench.folder)
            results[store, path].append(result)
            bench.say(f"  open loop, {store} {path}: p50 {result.p50:.0f}, p99 {result.p99:.0f} us")
    return results


def _add_line(
    table: Table,
    store: str,
    path: str,
    samples: Samples,
    loops: Mapping[tuple[str, str], list[LoadResult]],
) -> None:
    taken, plain = samples[store, path], samples[store, "plain"]
    hot = samples[store, "hot"]
    pairs = list(zip(taken, plain, strict=True))
    values = {
        "cpu_us": median(one.sample.cpu_us for one in taken),
        "cpu_share": median(base.sample.cpu_us / one.sample.cpu_us for one, base in pairs),
        "rps_share": median(one.sample.rps / base.sample.rps for one, base in pairs),
        "calls": sum(one.calls for one in taken) / len(taken),
        "cpu_of_hot": median(
            one.sample.cpu_us / base.sample.cpu_us for one, base in zip(hot, taken, strict=True)
        ),
        "rps_of_hot": median(
            one.sample.rps / base.sample.rps for one, base in zip(taken, hot, strict=True)
        ),
    }
    added = "-"
    loop = loops.get((store, path), [])
    if path != "plain" and loop:
        both = zip(loop, loops[store, "plain"], strict=True)
        values["p50_added"] = median(one.p50 - base.p50 for one, base in both)
        added = f"{values['p50_added']:.0f}"
    idle = median(one.sample.load_idle for one in taken)
    rps = f"{median(one.sample.rps for one in taken):.0f}"
    table.lines.append(
        [
            store,
            PATHS[path],
            show_spread([one.sample.cpu_us for one in taken]),
            f"{values['cpu_share']:.2f}",
            rps if idle >= IDLE_NEEDED else f"({rps})",
            f"{values['rps_share']:.2f}",
            f"{idle:.0%}",
            f"{median(one.store_us for one in taken):.2f}",
            f"{values['calls']:.3f}",
            f"{median(one.sample.load.p50 for one in taken):.0f}",
            f"{median(one.sample.load.p99 for one in taken):.0f}",
            added,
            str(sum(one.sample.load.errors for one in taken) + sum(one.errors for one in loop)),
            str(sum(one.unsent for one in loop)),
        ]
    )
    table.values[f"{store} {path}"] = values


def _add_notes(table: Table, samples: Samples, rate: int) -> None:
    table.notes += [
        "each ratio is the median of the ratios within a round, to the plain route of the same process.",
        "requests/s in brackets: the load CPU, which generator, origin and store share, had under "
        "10 % idle; CPU us/request of the proxy is the figure.",
        f"open loop: {rate} requests/s, {OPEN_LOAD:.0%} of the plain route's in the closed loop; "
        "unsent: due, and no connection was free.",
    ]
    for store in STORES:
        taken = [one.sample.load for one in samples[store, "spent"]]
        passed = sum(one.requests - one.refused for one in taken)
        table.notes.append(f"{store}: {passed} requests passed the limit that is used up.")
