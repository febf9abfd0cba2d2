"""Memory rows: PSS per idle keep-alive connection, and PSS per route with a backend of its own.

In: counts. Out: tables. PSS (smaps_rollup) over all processes of a proxy, so shared pages count
once. Kernel socket buffers are not in it; they are the same for all.
Must never compare a cold proxy with a warm one: both readings follow the same traffic.
"""

import json
import subprocess

from bench.field import Bench, Variant, open_field, start_peer, stop_peer
from bench.generator import Load, run_load
from bench.native import find_tool
from bench.peers.peer import Peer, PeerUnavailable, Running
from bench.probe import ProbeFailed
from bench.process import LOAD_CPU, read_pss_bytes
from bench.scenario import Scenario
from bench.table import Table, show_bytes

WARM_SECONDS = 0.5
OPEN_SECONDS = 60.0


def measure_idle(bench: Bench, name: str, title: str, wanted: Scenario) -> Table:
    """Open as many connections as the scenario asks for, one answer on each, and read memory while they wait."""
    table = Table(name, title, ["proxy", "per connection", "before", "after", "open", "still open"])
    count = wanted.connections
    with open_field(bench, [Variant("", wanted)]) as field:
        for entrant in field.entrants:
            running = entrant.running
            scenario, port = entrant.variant.scenario, running.setup.port
            run_load(Load(), scenario, port, WARM_SECONDS, bench.folder)
            before = read_pss_bytes(running.pids())
            opened, after, alive = _hold_connections(running, count)
            each = (after - before) / max(opened, 1)
            bench.say(f"  {entrant.label}: {show_bytes(each)} per connection, {alive} alive")
            table.lines.append(
                [entrant.label, show_bytes(each), show_bytes(before), show_bytes(after)]
                + [str(opened), str(alive)]
            )
            table.values[entrant.label] = {"bytes": each}
    for label, reason in field.missing.items():
        table.add_missing(label, reason)
    table.notes.append(f"{count} keep-alive connections, each has been answered once and waits.")
    return table


def _hold_connections(running: Running, count: int) -> tuple[int, int, int]:
    """(opened, PSS while they are open, still open at the end)."""
    tool = "idle-tls" if running.setup.scenario.tls else "idle"
    argv = ["taskset", "-c", str(LOAD_CPU), str(find_tool(tool))]
    argv += [str(running.setup.port), str(count)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        opened = int(json.loads(process.stdout.readline())["open"])
        after = read_pss_bytes(running.pids())
        process.stdin.close()
        alive = int(json.loads(process.stdout.readline())["alive"])
        process.wait(OPEN_SECONDS)
    return opened, after, alive


def measure_route_memory(bench: Bench, name: str, title: str, count: int) -> Table:
    """PSS with `count` routes and backends minus PSS with one, per route."""
    header = ["proxy", "per route", f"{count} routes", "1 route", "without first process"]
    table = Table(name, title, header)
    for peer in bench.peers:
        if not peer.routes:
            table.add_missing(peer.name, "has no routing")
            continue
        try:
            one, one_rest = _read_memory(bench, peer, 1)
            many, many_rest = _read_memory(bench, peer, count)
        except (PeerUnavailable, ProbeFailed) as error:
            table.add_missing(peer.name, str(error))
            continue
        each, rest = (many - one) / (count - 1), (many_rest - one_rest) / (count - 1)
        bench.say(f"  {peer.name}: {show_bytes(each)} per route")
        alone = show_bytes(rest) if many_rest else "-"
        table.lines.append([peer.name, show_bytes(each), show_bytes(many), show_bytes(one), alone])
        table.values[peer.name] = {"bytes": rest if many_rest else each, "all": each}
    table.notes.append(
        "each route has a host and a backend of its own. Last column: per route over all processes "
        "but the first (nginx: the worker; edgefast: the workers, which carry the traffic)."
    )
    return table


def _read_memory(bench: Bench, peer: Peer, routes: int) -> tuple[int, int]:
    """PSS of all processes and of all but the first, after a probe and a short warm load."""
    scenario = Scenario(routes=routes, own_backends=True)
    running = start_peer(bench, peer, scenario, f"{peer.name} memory {routes}")
    try:
        one_host = Scenario()  # the load stays on one route: pools of many backends are not asked
        run_load(Load(), one_host, running.setup.port, WARM_SECONDS, bench.folder)
        pids = running.pids()
        return read_pss_bytes(pids), read_pss_bytes(pids[1:])
    finally:
        stop_peer(running)
