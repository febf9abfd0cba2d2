"""Everything changes while traffic flows: routes, endpoints, certificates, and a worker dies. No request may be lost.

Issue: 1,000 edits, certificates swapped, one worker killed, and no failed request except those in flight in the killed
worker. EDGEFAST_CHAOS_EDITS sets another number of edits for the heavy suite. What is asserted is counted, never timed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.certificates import Authority, Pair
from wire.harness.client import Client, NoResponse
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

EDITS = int(os.environ.get("EDGEFAST_CHAOS_EDITS", "300"))
ROUTES = 40
CLIENTS = 6
TLS_CLIENTS = 2
SEED = 7


@dataclass
class Traffic:
    """What the clients saw."""

    served: int = 0
    failures: list[str] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)  # client ports whose connection ended too soon
    lock: threading.Lock = field(default_factory=threading.Lock)


class World:
    """The objects, edited step by step."""

    def __init__(self, ports: dict[str, int], authority: Authority) -> None:
        self.plain, self.tls = free_port(), free_port()
        self.ports = ports
        self.authority = authority
        self.pair: Pair = authority.issue(["c.test"])
        self.target = dict.fromkeys(range(ROUTES), "one")
        self.stable = ["one"]  # which origins stand behind the stable service

    def objects(self) -> list[make.Object]:
        """All of it."""
        made = [
            make.gateway("web", [make.listener(self.plain)]),
            make.gateway("tls", [make.listener(self.tls, "tls", "c.test", ["pair"])]),
            make.tls_secret("pair", self.pair.certificate, self.pair.key),
            make.route("tls", [make.rule("stable")], ["c.test"], "tls"),
            make.route("stable", [make.rule("stable")], ["c.test"]),
            *make.service("stable", [("127.0.0.1", self.ports[name]) for name in self.stable]),
        ]
        for name, port in self.ports.items():
            made += make.service(name, [("127.0.0.1", port)])
        for number, target in self.target.items():
            matches = [make.path(f"/r{number}")]
            made.append(make.route(f"r{number}", [make.rule(target, matches=matches)], ["c.test"]))
        return made

    def edit(self, step: int, chooser: random.Random) -> None:
        """One change: mostly a route, sometimes endpoints or the certificate."""
        if step % 50 == 49:
            self.pair = self.authority.issue(["c.test"])
        elif step % 5 == 4:
            self.stable = chooser.sample(sorted(self.ports), chooser.choice([1, 2, 3]))
        else:
            number = chooser.randrange(ROUTES)
            self.target[number] = chooser.choice(["one", "two", "three"])


def drive(world: World, traffic: Traffic, stop: threading.Event, number: int) -> None:
    """One client: some requests on a connection, then another connection, until told to stop."""
    chooser = random.Random(number)
    context = world.authority.client_context()
    tls = number >= CLIENTS
    while not stop.is_set():
        served = 0
        ports: list[int] = []
        try:
            address = ("127.0.0.1", world.tls if tls else world.plain)
            with Client(
                address,
                tls=context if tls else None,
                sni="c.test" if tls else None,
                on_connect=ports.append,
            ) as client:
                for _ in range(chooser.randrange(1, 30)):
                    target = f"/r{chooser.randrange(ROUTES)}/x" if chooser.random() < 0.7 else "/s"
                    answer = client.request("GET", target, "c.test")
                    served += 1
                    body = json.loads(answer.body) if answer.status == 200 else {}
                    if answer.status != 200 or body["target"] != target:
                        with traffic.lock:
                            traffic.failures.append(
                                f"{target}: {answer.status} {answer.body[:80]!r}"
                            )
                    if answer.closes:
                        break
        except (OSError, NoResponse) as error:
            with traffic.lock:
                traffic.lost += ports or [0]
                if "timeout" in str(error):
                    traffic.failures.append(f"{error!r}")
        with traffic.lock:
            traffic.served += served


@contextmanager
def running_traffic(world: World) -> Iterator[Traffic]:
    """Clients in the background; on leaving they have stopped."""
    traffic, stop = Traffic(), threading.Event()
    threads = [
        threading.Thread(target=drive, args=(world, traffic, stop, number))
        for number in range(CLIENTS + TLS_CLIENTS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield traffic
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def kill_worker(gateway: Gateway, victim: int, listening: set[int]) -> set[int]:
    """Kill it; returns the client ports of the connections it had accepted, which alone may be lost."""
    os.kill(victim, signal.SIGSTOP)  # so that what it holds stays; its queue is its successor's
    gateway.wait_until(lambda: proc.state(victim) == "T", "stopped worker")
    held = {
        one.remote_port
        for one in proc.connections([victim])
        if one.local_port in listening and one.state != "LISTEN"
    }
    os.kill(victim, signal.SIGKILL)
    return held


def await_successor(gateway: Gateway, victim: int) -> None:
    """The killed worker has been replaced."""

    def replaced() -> bool:
        workers = gateway.worker_pids
        return len(workers) == 2 and victim not in workers

    gateway.wait_until(replaced, "a successor of the killed worker")


def await_traffic(gateway: Gateway, traffic: Traffic) -> None:
    """Some hundred requests more have been served."""
    wanted = traffic.served + 200
    gateway.wait_until(lambda: traffic.served > wanted, "traffic")


def check_final_state(world: World) -> None:
    """What is served is what was written last."""
    with Client(("127.0.0.1", world.plain)) as client:
        for number, target in world.target.items():
            answer = client.request("GET", f"/r{number}", "c.test")
            assert json.loads(answer.body)["origin"] == target
        seen = {json.loads(client.request("GET", "/s", "c.test").body)["origin"] for _ in range(60)}
        assert seen == set(world.stable)


def test_no_request_is_lost() -> None:
    """Hundreds of edits of routes, endpoints and certificates, and a killed worker in the middle."""
    chooser = random.Random(SEED)
    with ExitStack() as stack:
        origins = {
            name: stack.enter_context(RecordingOrigin(echo(name)))
            for name in ("one", "two", "three")
        }
        world = World({name: origin.port for name, origin in origins.items()}, Authority())
        gateway = stack.enter_context(Gateway(world.objects(), workers=2, json_file=True))
        gateway.workers_may_die = True
        held: set[int] = set()
        with running_traffic(world) as traffic:
            for step in range(EDITS):
                world.edit(step, chooser)
                gateway.write(world.objects())
                if step % 20 == 19:
                    gateway.wait_until(gateway._has_generation, f"generation {gateway.generation}")
                if step == EDITS // 2:
                    victim = gateway.worker_pids[0]
                    held = kill_worker(gateway, victim, {world.plain, world.tls})
                    await_successor(gateway, victim)
                for origin in origins.values():
                    origin.take()
            gateway.wait_until(gateway._has_generation, "the last generation")
            alive = traffic.served
            gateway.wait_until(lambda: traffic.served > alive + 100, "traffic after the last edit")
        assert not traffic.failures, traffic.failures[:10]
        assert gateway.metric("edgefast_worker_restarts_total") == 1
        assert len(traffic.lost) == len(set(traffic.lost)), "one connection is lost once"
        assert held.issuperset(traffic.lost), "lost, and the killed worker did not hold them"
        assert len(traffic.lost) <= CLIENTS + TLS_CLIENTS, "more were lost than were in flight"
        assert traffic.served > EDITS
        check_final_state(world)


def serves(port: int) -> bool:
    """Whether a new connection is answered well; one that is refused is an OSError."""
    with Client(("127.0.0.1", port)) as client:
        return client.request("GET", "/x").status == 200


def test_listeners_come_and_go_under_traffic() -> None:
    """Gateways appear and vanish on other ports; the one in use does not notice."""
    with RecordingOrigin(echo("one")) as origin:
        ports = dict.fromkeys(("one", "two", "three"), origin.port)
        world = World(ports, Authority())
        extra = [free_port() for _ in range(3)]
        with Gateway(world.objects(), workers=2, json_file=True) as gateway:
            with running_traffic(world) as traffic:
                for step in range(8):
                    more = [
                        item
                        for number, port in enumerate(extra)
                        if (step >> number) & 1
                        for item in (
                            make.gateway(f"extra{number}", [make.listener(port)]),
                            make.route(
                                f"extra{number}", [make.rule("one")], parent=f"extra{number}"
                            ),
                        )
                    ]
                    gateway.apply([*world.objects(), *more])
                    for number, port in enumerate(extra):
                        if (step >> number) & 1:
                            # A port that has just been given up is closed first, then bound again.
                            gateway.wait_until(lambda port=port: serves(port), f"port {port}")  # type: ignore[misc]
                    origin.take()
            assert not traffic.failures and not traffic.lost, (traffic.failures[:5], traffic.lost)


def test_unreadable_files_change_nothing() -> None:
    """Half a file, no file, nonsense: the old table stays, and the next good file is taken."""
    with RecordingOrigin(echo("one")) as origin:
        world = World(dict.fromkeys(("one", "two", "three"), origin.port), Authority())
        with Gateway(world.objects()) as gateway:
            good = gateway.file.read_bytes()
            with running_traffic(world) as traffic:
                half = good[: len(good) // 2] + b"\n  {["
                for bad in (half, b"\x00\xff", b"a: [", b"%YAML 9", good + b"\n---\n\tx: y\n"):
                    gateway.file.write_bytes(bad)
                    await_traffic(gateway, traffic)
                gateway.file.unlink()
                await_traffic(gateway, traffic)
                gateway.apply(world.objects())
                origin.take()
            assert not traffic.failures and not traffic.lost, traffic.failures[:5]
