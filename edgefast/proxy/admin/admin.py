"""The operator's servers: routes of admin, metrics and readiness.

In: the agent.
Out: routes for HttpServer.
  admin     GET /dump /explain /limits /metrics /version /ready /connections /log-level
            GET /console/ and paths below it, unless it is off (edgefast.console)
  metrics   GET /metrics
  ready     GET /ready (may this process get traffic), /live (does its loop run: for liveness)
Admin listens on loopback only (127.0.0.1:19000) and is read-only. A unix socket accepts commands
(control_commands.py), and the engine never connects to a port of its own proxy as a backend.
Must never: show key material. Answers contain only the name, version, size and public certificate
facts of a secret, and only the length of a credential that a route sets or compares (redact.py).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import ssl
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

import edgefast
from edgefast import ir
from edgefast.console import LazyConsole
from edgefast.daemon.logs import LEVELS
from edgefast.httpd.control_socket import refuse_command
from edgefast.httpd.server import Handler, Reply, Request
from edgefast.proxy.admin.console_source import ConsoleSource
from edgefast.proxy.admin.control_commands import ORDERS
from edgefast.proxy.admin.limit_list import LimitList
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.control.channel import ChannelClosed, ChannelError
from edgefast.proxy.metrics.exposition import (
    CONTENT_TYPE,
    AgentFacts,
    render_metrics,
    render_openmetrics,
)
from edgefast.proxy.metrics.openmetrics import OPENMETRICS_TYPE, is_wanted
from edgefast.proxy.metrics.stats import sum_globals
from edgefast.proxy.sockets.bind_address import host_of, transport_at
from edgefast.proxy.tables.worker_tables import Key, Placed
from edgefast.proxy.tls.certificates import CertificateFacts, PemError, read_facts
from edgefast.table import describe_blob
from edgefast.table.redacted import hide_listener, hide_policy

if TYPE_CHECKING:
    from edgefast.proxy.admin.explain_handler import Explained

__all__ = ["PROBES", "Admin"]

#: Paths of probes and hooks: they are always answered, at negligible cost.
PROBES = frozenset({"/ready", "/live", "/connections"})
_JSON = "application/json"
_SECRET: msgspec.msgpack.Decoder[ir.Secret] = msgspec.msgpack.Decoder(ir.Secret)
_POLICY: msgspec.msgpack.Decoder[ir.PolicyUnit] = msgspec.msgpack.Decoder(ir.PolicyUnit)
_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)
_STREAM: msgspec.msgpack.Decoder[ir.StreamRoute] = msgspec.msgpack.Decoder(ir.StreamRoute)
_LIMIT_STORE = msgspec.msgpack.Decoder(ir.RateLimitStore)
_PROXIES = msgspec.msgpack.Decoder(ir.Proxies)
_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)

Routes = Mapping[tuple[str, str], Handler]


class Admin:
    """Routes of the admin, metrics and readiness servers."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._limits = LimitList(agent)
        self._explained: Explained | None = None
        self._numbers = itertools.count(1)
        self._console = (
            LazyConsole(ConsoleSource(agent, self._limits)) if agent.settings.console else None
        )
        self._facts: dict[str, tuple[str, CertificateFacts | None]] = {}  # secret: version, facts

    @property
    def admin(self) -> Routes:
        """Routes of the admin server."""
        return {
            ("GET", "/dump"): self._on_dump,
            ("GET", "/explain"): self._on_explain,
            ("GET", "/limits"): self._limits.on_limits,
            ("GET", "/metrics"): self._on_metrics,
            ("GET", "/version"): self._on_version,
            ("GET", "/ready"): self._on_ready,
            ("GET", "/connections"): self._on_connections,
            ("GET", "/log-level"): self._on_log_level,
            **{("POST", path): refuse_command for path in ORDERS},
            **(self._console.routes if self._console is not None else {}),
        }

    @property
    def metrics(self) -> Routes:
        """Routes of the metrics server."""
        return {("GET", "/metrics"): self._on_metrics}

    @property
    def ready(self) -> Routes:
        """Routes of the readiness server."""
        return {("GET", "/ready"): self._on_ready, ("GET", "/live"): self._on_live}

    async def _on_explain(self, request: Request) -> Reply:
        """Explain a request in a thread; the first one imports the modules (100 ms, 10 MiB)."""
        if self._explained is None:
            await asyncio.to_thread(import_module, "edgefast.proxy.admin.explain_handler")
        if self._explained is None:  # another request may have made it meanwhile
            from edgefast.proxy.admin.explain_handler import Explained

            self._explained = Explained(self._agent, self._limits)
        return await self._explained.on_explain(request)

    async def _on_version(self, _: Request) -> Reply:
        return _json(
            {
                "version": edgefast.__version__,
                "python": platform.python_version(),
                "openssl": ssl.OPENSSL_VERSION,
                "tls": self._agent.tls,
                "table": self._agent.ledger.current.version,
            }
        )

    async def _on_ready(self, _: Request) -> Reply:
        if self._agent.ready:
            return Reply(200, b"ready\n")
        phase = self._agent.drain.phase
        return Reply(503, b"not ready: " + (b"no table yet" if phase == "serving" else b"draining"))

    async def _on_live(self, _: Request) -> Reply:
        return Reply(200, b"live\n")

    async def _on_connections(self, _: Request) -> Reply:
        """What a shutdown waits for: connections of clients that are open now."""
        totals = sum_globals([slot.segment for slot in self._agent.slots])
        phase = self._agent.drain.phase
        return _json({"active": totals["connections_active"], "phase": phase})

    async def _on_log_level(self, _: Request) -> Reply:
        return _json({"level": self._agent.log_level, "supported": list(LEVELS)})

    # --- metrics --------------------------------------------------------------------------------

    async def _on_metrics(self, request: Request) -> Reply:
        """Text; OpenMetrics for who names it, where a listener has exemplars: they have no other place."""
        agent = self._agent
        placed = agent.ledger.current.placed
        kept = agent.last_good
        now = time.time()
        facts = AgentFacts(
            product_version=edgefast.__version__,
            tls=agent.tls,
            started_at=agent.started_at,
            table_version=agent.ledger.current.version,
            table_age=now - agent.table_at if agent.table_at else 0.0,
            table_resources=len(placed),
            reloads=agent.tables,
            problems=len(agent.problems) + len(agent.source_problems),
            refused=len(agent.ledger.current.refused),
            ready=agent.ready,
            draining=agent.drain.phase != "serving",
            workers=len(agent.slots),
            workers_alive=sum(slot.serving for slot in agent.slots),
            restarts=sum(slot.restarts for slot in agent.slots),
            arena_used=agent.arena.used,
            arena_retired=agent.arena.retired,
            last_good_failures=kept.failures if kept else 0,
            spans_exported=agent.spans.exported,
            spans_lost=agent.spans.lost,
            last_good_age=now - kept.saved_at if kept and kept.saved_at else None,
            expiries={
                name: facts.expires
                for name, facts in self._certificates(placed).items()
                if facts is not None
            },
            store_troubles=agent.uncounted.count_stores(),
            keys_failing=agent.keys.failing(),
            token_requests=agent.token_exchange.count_results(),
            stream=agent.stream(),
        )
        segments = [slot.segment for slot in agent.slots]
        if agent.spans.marking and is_wanted(request.accept):
            marks = agent.spans.exemplars.marks
            page = await asyncio.to_thread(lambda: render_openmetrics(segments, facts, marks()))
            return Reply(200, page, OPENMETRICS_TYPE)
        return Reply(200, await asyncio.to_thread(render_metrics, segments, facts), CONTENT_TYPE)

    def _certificates(self, placed: Mapping[Key, Placed]) -> dict[str, CertificateFacts | None]:
        """Public facts of every secret with a certificate, read once per version."""
        now: dict[str, tuple[str, CertificateFacts | None]] = {}
        for (type_, name), one in placed.items():
            if type_ != "secret":
                continue
            known = self._facts.get(name)
            if known is None or known[0] != one.version:
                known = (one.version, _facts_of(self._agent.arena.read(one.block)))
            now[name] = known
        self._facts = now
        return {name: facts for name, (_, facts) in now.items()}

    # --- dump -----------------------------------------------------------------------------------

    async def _on_dump(self, request: Request) -> Reply:
        """All, or with ?type= and ?name= the resources of one type or with one name."""
        agent = self._agent
        table = agent.ledger.current
        wanted = [
            (key, one)
            for key, one in table.placed.items()
            if request.query.get("type", key[0]) == key[0]
            and request.query.get("name", key[1]) == key[1]
        ]
        # Bytes are copied here, in the loop, where no epoch can end; decoding is done elsewhere.
        copies = [(key, one.version, agent.arena.read(one.block)) for key, one in wanted]
        facts = self._certificates(table.placed)
        workers = await asyncio.gather(*(self._ask(slot.number) for slot in agent.slots))
        head = {
            "agent": self._describe_agent(),
            "workers": workers,
            "problems": [
                {
                    "severity": one.severity,
                    "object": str(one.object or ""),
                    "reason": one.reason,
                    "text": one.line(),
                }
                for one in (*agent.source_problems, *agent.problems)
            ],
            "table": {
                "version": table.version,
                "accepted": _clock(agent.table_at),
                "resources": len(table.placed),
                "refused": [one._asdict() for one in table.refused.values()],
            },
        }
        objects = agent.objects if not request.query else None
        return await asyncio.to_thread(_render_dump, head, copies, facts, objects)

    def _describe_agent(self) -> dict[str, Any]:
        agent = self._agent
        return {
            "version": edgefast.__version__,
            "pid": os.getpid(),
            "started": _clock(agent.started_at),
            "phase": agent.drain.phase,
            "ready": agent.ready,
            "log_level": agent.log_level,
            "bound": [
                {"address": host_of(one), "port": one[1], "transport": transport_at(one)}
                for one in agent.bound()
            ],
            "arena": {
                "reserved": agent.arena.capacity,
                "used": agent.arena.used,
                "retired": agent.arena.retired,
            },
            **({"stream": msgspec.to_builtins(stream)} if (stream := agent.stream()) else {}),
        }

    async def _ask(self, number: int) -> dict[str, Any]:
        slot = self._agent.slots[number]
        held = self._agent.ledger.held_by(number)
        reported: dict[str, Any] = {
            "worker": number,
            "pid": slot.pid,
            "restarts": slot.restarts,
            "version": held.version if held else "",
        }
        try:
            reported["engine"] = await slot.dump(next(self._numbers))
        except (ChannelClosed, ChannelError, TimeoutError) as error:
            reported["error"] = str(error) or "no answer in time"
        return reported


def _render_dump(
    head: dict[str, Any],
    copies: list[tuple[Key, str, bytes]],
    facts: Mapping[str, CertificateFacts | None],
    objects: Callable[[], Mapping[str, object]] | None,
) -> Reply:
    """Decode the resources: runs in a thread."""
    hosts: list[dict[str, Any]] = []
    parts: dict[str, list[dict[str, Any]]] = {
        type_: []
        for type_ in (
            *("listener", "stream_route", "cluster", "policy", "secret", "limit_store"),
            "proxies",
        )
    }
    for (type_, name), version, data in copies:
        listed = parts.get(type_, hosts)
        place = {"name": name, "version": version}
        try:
            listed.append({**_describe(type_, data, facts.get(name)), **place})
        except ValueError as error:  # costs what is in it, and nothing else
            listed.append({**place, "error": f"cannot be read: {error}"})
    body = {
        **head,
        "listeners": sorted(parts["listener"], key=_name),
        "virtual_hosts": sorted(hosts, key=_name),
        "stream_routes": sorted(parts["stream_route"], key=_name),
        "clusters": sorted(parts["cluster"], key=_name),
        "policies": sorted(parts["policy"], key=_name),
        "secrets": sorted(parts["secret"], key=_name),
        "limit_stores": parts["limit_store"],
        "proxies": parts["proxies"],
        **({"objects": objects()} if objects is not None else {}),
    }
    return _json(body)


def _describe(type_: str, data: bytes, about: CertificateFacts | None) -> dict[str, Any]:
    """Return a resource as it may be shown. Raises ValueError for bytes that cannot be read."""
    match type_:
        case "listener":
            shown: dict[str, Any] = msgspec.to_builtins(hide_listener(_LISTENER.decode(data)))
        case "stream_route":
            shown = msgspec.to_builtins(_STREAM.decode(data))
        case "cluster":
            shown = msgspec.to_builtins(_CLUSTER.decode(data))
        case "policy":
            shown = msgspec.to_builtins(hide_policy(_POLICY.decode(data)))
        case "secret":
            _SECRET.decode(data)
            reported = {"names": about.names, "expires": _clock(about.expires)} if about else {}
            shown = {**reported, "data": "<redacted>"}
        case "limit_store":
            store = _LIMIT_STORE.decode(data)
            shown = {"kind": store.kind, "mode": store.mode, "addresses": store.addresses}
            shown["credentials"] = "<redacted>"
        case "proxies":
            shown = msgspec.to_builtins(_PROXIES.decode(data))
        case _:
            shown = {"type": type_, **describe_blob(data)}
    return shown


def _name(value: dict[str, Any]) -> str:
    return str(value["name"])


def _facts_of(secret: bytes) -> CertificateFacts | None:
    try:
        certificate = _SECRET.decode(secret).certificate
        return read_facts(certificate) if certificate else None
    except (PemError, ValueError):
        return None


def _clock(seconds: float) -> str | None:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else None


def _json(value: object) -> Reply:
    return Reply(200, msgspec.json.encode(value) + b"\n", _JSON)
