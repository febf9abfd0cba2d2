"""Start and reload rows: from exec to the first 200 of the last of many routes; from a changed
file to the first 200 of the added route.

In: a number of routes. Out: a `Table`. Both are wall-clock seconds with the proxy on its CPU and
the poll (a new connection every 1-2 ms) on the other.
Must never time the rendering of a configuration: files are there before the clock starts.
"""

import time
from statistics import median

from bench.field import Bench, start_peer, stop_peer
from bench.peers.peer import Peer, PeerUnavailable, Running, Setup, get_status
from bench.probe import ProbeFailed
from bench.scenario import Scenario
from bench.table import Table, show_spread

RELOAD_SECONDS = 10.0


def measure_start(bench: Bench, name: str, title: str, routes: int) -> Table:
    """Start each proxy once a round, alternating; add one route to the running proxy."""
    table = Table(name, title, ["proxy", "start ms", "reload ms"])
    starts: dict[str, list[float]] = {}
    reloads: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for _ in range(bench.rounds):
        for peer in bench.peers:
            try:
                start, reload_ms = _time_peer(bench, peer, routes)
            except (PeerUnavailable, ProbeFailed) as error:
                reasons[peer.name] = str(error)
                continue
            starts.setdefault(peer.name, []).append(start)
            if isinstance(reload_ms, float):
                reloads.setdefault(peer.name, []).append(reload_ms)
            else:
                reasons[f"{peer.name} reload"] = reload_ms
            bench.say(f"  {peer.name}: start {start:.0f} ms, reload {reload_ms}")
    for peer in bench.peers:
        if peer.name not in starts:
            table.add_missing(peer.name, reasons[peer.name])
            continue
        again = reloads.get(peer.name)
        told = show_spread(again, 0) if again else reasons.get(f"{peer.name} reload", "-")
        table.lines.append([peer.name, show_spread(starts[peer.name], 0), told])
        table.values[peer.name] = {"start_ms": median(starts[peer.name])}
        if again:
            table.values[peer.name]["reload_ms"] = median(again)
    table.notes.append(f"{routes} routes on as many hosts; the reload adds one route.")
    return table


def _time_peer(bench: Bench, peer: Peer, routes: int) -> tuple[float, float | str]:
    """(start ms, reload ms or why there is none)."""
    scenario = Scenario(routes=routes)
    running = start_peer(bench, peer, scenario, f"{peer.name} start")
    try:
        return running.ready_seconds * 1e3, _time_reload(running, Scenario(routes=routes + 1))
    except PeerUnavailable as error:
        return running.ready_seconds * 1e3, str(error)
    finally:
        stop_peer(running)


def _time_reload(running: Running, scenario: Scenario) -> float:
    """Milliseconds from the change to the first 200 on the added route."""
    old = running.setup
    setup = Setup(scenario, old.folder, old.port, old.origin_port, old.certificate)
    added = scenario.routes - 1
    if get_status(setup, added) != 404:
        raise ProbeFailed("the route to be added already answers")
    trigger = running.peer.prepare_reload(running, scenario)
    began = time.monotonic()
    trigger()
    while (now := time.monotonic()) - began < RELOAD_SECONDS:
        if get_status(setup, added) == 200:
            return (now - began) * 1e3
        time.sleep(0.001)
    raise ProbeFailed(f"the added route did not answer within {RELOAD_SECONDS:.0f} s")
