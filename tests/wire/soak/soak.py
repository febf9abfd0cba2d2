"""A soak: everything that clients do at once, for long, with new tables each second and a worker killed now and then.

In: seconds. Out: what was done, failed and measured; `judge` says what is wrong with it. One of the two workers is killed again and
again, the other one lives from start to end: its memory and descriptors are what is looked at, beside the agent's.
"""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from rate_limit.servers import running
from wire.grpc.backend import GrpcBackend
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.certificates import Authority
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.limits.proxy import limit, limits
from wire.soak.journal import Journal
from wire.soak.loads import CALLS, LOADS, NAME, USER, WORD, Target
from wire.soak.origin import SoakOrigin

RELOAD = 1.0  # seconds between two tables
KILL = 60.0  # ... between two kills
GROWTH = 12 << 20  # bytes from a third of the way to the end
DESCRIPTORS = 8  # more than before the first client: connections to the backend that wait for the next request
MANY = 10**9  # requests that a limit allows
PAIRS = 8  # certificates that take turns


@dataclass
class Report:
    """What a soak has seen."""

    seconds: float
    journal: Journal
    reloads: int = 0
    memory: dict[str, list[int]] = field(default_factory=dict)  # bytes, a sample a second
    descriptors: dict[str, tuple[int, int]] = field(default_factory=dict)  # before, after

    def judge(self) -> list[str]:
        """What is not as it should be."""
        journal, found = self.journal, list(self.journal.failures)
        if journal.failed:
            found.append(f"failed: {dict(journal.failed)}")
        found += [f"{one.__name__} did nothing" for one in LOADS if not journal.done[one.__name__]]
        if journal.resumed < journal.done["resumed"] * 0.9 - 5:
            found.append(f"resumed {journal.resumed} of {journal.done['resumed']}")
        for name, sizes in self.memory.items():
            grown = max(sizes[-5:]) - max(sizes[: len(sizes) // 3 + 1])
            if grown > GROWTH:
                found.append(f"{name} grew by {grown >> 10} KiB after a third of the time")
        for name, (before, after) in self.descriptors.items():
            if after > before + DESCRIPTORS:
                found.append(f"{name} had {before} descriptors, and has {after}")
        return found

    def text(self) -> str:
        """For people."""
        done = self.journal.done
        lines = [
            f"{self.seconds:.0f} s, {sum(done.values())} done: {dict(done)}",
            f"resumed {self.journal.resumed}, {self.reloads} tables, {len(self.journal.kills)} kills",
            f"failed {dict(self.journal.failed)}, in killed workers {dict(self.journal.excused)}",
        ]
        for name, sizes in self.memory.items():
            at = [sizes[len(sizes) * part // 6] >> 10 for part in range(6)] + [sizes[-1] >> 10]
            lines.append(f"{name}: KiB {at}, descriptors {self.descriptors.get(name)}")
        return "\n".join([*lines, *self.judge()])


class SoakGateway(Gateway):
    """A plain port and an HTTPS one, both also for HTTP/2 and gRPC; one for TCP and one for UDP. Limits count in Redis."""

    def __init__(self, origin: SoakOrigin, calls: int, redis: str) -> None:
        self.authority = Authority()
        self.pairs = [self.authority.issue([NAME]) for _ in range(PAIRS)]
        self.plain, self.tls, self.tcp, self.udp = (free_port() for _ in range(4))
        self._origin, self._calls = origin, calls
        self._table = 0
        super().__init__(self.build(), workers=2)
        self.workers_may_die = True
        config = self.folder / "config.yaml"
        kind = {"apiVersion": "config.gateway.edge.io/v1alpha1", "kind": "EdgeGateway"}
        store = {"timeout": "10s", "backend": {"type": "Redis", "redis": {"url": redis}}}
        config.write_text(yaml.safe_dump({**kind, "rateLimit": store}))
        self._arguments += ["--config", str(config)]

    def build(self) -> list[make.Object]:
        """The next table: another certificate, another header."""
        self._table += 1
        pair = self.pairs[self._table % PAIRS]
        header = {"name": "x-table", "value": str(self._table)}
        change = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [header]}}
        listeners = [
            make.listener(self.plain, "plain"),
            make.listener(self.tls, "tls", "", ["pair"]),
            make.listener(self.tcp, "tcp", protocol="TCP"),
            make.listener(self.udp, "udp", protocol="UDP"),
        ]
        limited = make.rule(
            "origin", matches=[make.path("/limited")], filters=[make.filter_ref("much"), change]
        )
        return [
            make.gateway("web", listeners),
            make.route("all", [make.rule("origin", filters=[change]), limited], [NAME]),
            make.route("guarded", [make.rule("origin", matches=[make.path("/guarded")])], [NAME]),
            make.grpc_route(
                "calls", [make.rule("calls", matches=[make.method("test.Calls")])], [CALLS]
            ),
            _stream_route("tcp"),
            _stream_route("udp"),
            *_policies(),
            limits("much", limit(MANY)),
            make.tls_secret("pair", pair.certificate, pair.key),
            *make.service("origin", [("127.0.0.1", self._origin.port)]),
            *make.service("calls", [("127.0.0.1", self._calls)]),
            *make.service("tcp", [("127.0.0.1", self._origin.port)]),
            *make.service("udp", [("127.0.0.1", self._origin.udp_port)], protocol="UDP"),
        ]


def _stream_route(name: str) -> make.Object:
    kind = {"apiVersion": f"{make.GROUP}/v1", "kind": f"{name.upper()}Route"}
    return make.route(name, [make.rule(name)], sectionName=name) | kind


def _policies() -> list[make.Object]:
    """Addresses and passwords for one route, compression for another."""
    here = {"group": make.GROUP, "kind": "HTTPRoute"}
    users = f"{USER}:{{SHA}}{base64.b64encode(hashlib.sha1(WORD.encode()).digest()).decode()}"
    loopback = {"action": "Allow", "principal": {"clientCIDRs": ["127.0.0.0/8"]}}
    security = {
        "targetRefs": [{**here, "name": "guarded"}],
        "basicAuth": {"users": {"name": "users"}},
        "authorization": {"defaultAction": "Deny", "rules": [loopback]},
    }
    traffic = {
        "targetRefs": [{**here, "name": "all"}],
        "compressor": [{"type": "Gzip", "gzip": {}}],
        "circuitBreaker": {"maxParallelRequests": 1000},
    }
    return [
        make.policy("SecurityPolicy", "guarded", security),
        make.policy("BackendTrafficPolicy", "all", traffic),
        make.secret("users", {".htpasswd": users.encode()}),
    ]


def _repeat(load: Callable[[Target], None], target: Target) -> None:
    while target.pause():
        begun = time.monotonic()
        try:
            load(target)
        except Exception as error:
            target.journal.fail(load.__name__, begun, error)


@contextmanager
def _running(target: Target) -> Iterator[None]:
    threads = [
        threading.Thread(target=_repeat, args=(load, target))
        for load, count in LOADS.items()
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        target.over.set()
        for thread in threads:
            thread.join()


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _kill(gateway: SoakGateway, survivor: int, journal: Journal) -> None:
    (victim,) = [pid for pid in gateway.worker_pids if pid != survivor]
    journal.begin_kill()
    os.kill(victim, signal.SIGKILL)
    gateway.wait_until(lambda: victim not in gateway.worker_pids, "its end")
    journal.end_kill()
    gateway.wait_until(lambda: len(gateway.worker_pids) == 2, "another worker")


def run(seconds: float, kill: float = KILL, say: Callable[[str], None] = lambda _: None) -> Report:
    """Soak for so long; raises what the harness finds by itself."""
    journal = Journal()
    report = Report(seconds, journal)
    with ExitStack() as stack:
        origin = stack.enter_context(SoakOrigin())
        calls = stack.enter_context(GrpcBackend())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edgefast-soak-")))
        redis = stack.enter_context(running(folder))
        gateway = stack.enter_context(SoakGateway(origin, calls.port, redis.address))
        survivor = gateway.worker_pids[0]
        looked_at = {"agent": gateway.pid, "worker": survivor}
        before = {name: _descriptors(pid) for name, pid in looked_at.items()}
        target = Target(
            gateway.plain,
            gateway.tls,
            gateway.tcp,
            gateway.udp,
            lambda alpn: gateway.authority.client_context(alpn=alpn),
            journal,
            threading.Event(),
        )
        began = time.monotonic()
        next_kill = began + kill / 2
        with _running(target):
            while (now := time.monotonic()) < began + seconds:
                if now >= next_kill:
                    _kill(gateway, survivor, journal)
                    next_kill += kill
                gateway.write(gateway.build())
                report.reloads += 1
                calls.calls.clear()
                for name, pid in looked_at.items():
                    report.memory.setdefault(name, []).append(proc.resident_bytes(pid))
                if report.reloads % 30 == 0:
                    say(report.text())
                target.over.wait(max(0.0, now + RELOAD - time.monotonic()))
        gateway.apply(gateway.build())
        assert survivor in gateway.worker_pids, "a worker died that nobody killed"
        gateway.wait_until(
            lambda: all(
                _descriptors(pid) <= before[name] + DESCRIPTORS for name, pid in looked_at.items()
            ),
            f"the descriptors of before: {before}",
        )
        report.descriptors = {
            name: (before[name], _descriptors(pid)) for name, pid in looked_at.items()
        }
    return report
