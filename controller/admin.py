"""Admin, probes and metrics: the three small servers of the controller, for operators and kubelet.

In: the components, as functions that return plain values.
Out: on loopback `/dump` (all that is served, without keys), `/fleets` (proxies and their versions),
`/denials` (requests that RBAC denies), `/version`, `/log-level`, `/console/` unless it is off
(edgefast.console); for kubelet `/healthz` and `/readyz`; for Prometheus `/metrics`. The log level
is changed on the control socket (edgefast/httpd/control_socket.py).
Must never: show key material, a token or a store's password, or accept a command by TCP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson

from edgefast import __version__, ir
from edgefast.console import LazyConsole
from edgefast.daemon.logs import LEVELS, set_level
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import ControlSocket, refuse_command
from edgefast.httpd.server import HttpServer, Reply, Request, bind_server
from edgefast.table.redacted import hide_fleet

__all__ = ["Servers", "View", "plain_fleet"]

log = logging.getLogger(__name__)

_JSON = "application/json"
#: What kubelet asks: it is answered whatever else goes on, and costs nothing.
_PROBES = frozenset({"/healthz", "/readyz"})


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers can ask; all of it is called in the event loop."""

    dump: Callable[[], dict[str, Any]]  # an overview
    table: Callable[[str], ir.Fleet | None]  # of one fleet, by "namespace/name"
    fleets: Callable[[], list[dict[str, Any]]]
    metrics: Callable[[], bytes]
    healthy: Callable[[], str]  # why not, "" when all is well
    ready: Callable[[], str]
    denials: Callable[[], list[dict[str, str]]] = list
    console: LazyConsole | None = None  # None: it is off


class Servers:
    """All three; `run` serves until cancelled."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._servers: list[HttpServer | ControlSocket] = []

    def open_admin(self, address: Address) -> Address:
        """Bind the admin server; returns the address. Raises OSError."""
        bound = self._open(
            address,
            {
                ("GET", "/dump"): self._dump,
                ("GET", "/fleets"): self._fleets,
                ("GET", "/denials"): self._denials,
                ("GET", "/version"): self._version,
                ("GET", "/log-level"): self._log_level,
                ("POST", "/log-level"): refuse_command,
                **(self._view.console.routes if self._view.console is not None else {}),
            },
        )
        self._servers.append(ControlSocket(bound, {("POST", "/log-level"): self._set_log_level}))
        return bound

    def open_probes(self, address: Address) -> Address:
        """Bind the server of kubelet's probes."""
        return self._open(
            address,
            {("GET", "/healthz"): self._healthz, ("GET", "/readyz"): self._readyz},
            any_host=True,
        )

    def open_metrics(self, address: Address) -> Address:
        """Bind the server for Prometheus."""
        return self._open(address, {("GET", "/metrics"): self._metrics}, any_host=True)

    def _open(self, address: Address, routes: Mapping[Any, Any], any_host: bool = False) -> Address:
        server = HttpServer(bind_server(address), routes, probes=_PROBES, any_host=any_host)
        self._servers.append(server)
        return server.address

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._servers:
                tasks.create_task(one.run())

    # --- handlers -------------------------------------------------------------------------------

    async def _dump(self, request: Request) -> Reply:
        fleet = request.query.get("fleet")
        if fleet is None:
            return _json(self._view.dump())
        table = self._view.table(fleet)
        if table is None:
            return Reply(404, f"no fleet {fleet}\n".encode())
        # A large table takes a while to write.
        return await asyncio.to_thread(lambda: _json(plain_fleet(table)))

    async def _fleets(self, _: Request) -> Reply:
        return _json(self._view.fleets())

    async def _denials(self, _: Request) -> Reply:
        return _json(self._view.denials())

    async def _version(self, _: Request) -> Reply:
        return _json({"version": __version__})

    async def _log_level(self, _: Request) -> Reply:
        name = logging.getLevelName(logging.getLogger("controller").getEffectiveLevel())
        return Reply(200, f"{name.lower()}\n".encode())

    async def _set_log_level(self, request: Request) -> Reply:
        level = request.query.get("level", "")
        try:
            set_level(level)
        except ValueError:
            return Reply(400, f"level must be one of {', '.join(LEVELS)}\n".encode())
        log.warning("log level is now %s", level)
        return Reply(200, f"{level}\n".encode())

    async def _metrics(self, _: Request) -> Reply:
        return Reply(200, self._view.metrics(), "text/plain; version=0.0.4; charset=utf-8")

    async def _healthz(self, _: Request) -> Reply:
        return _state(self._view.healthy())

    async def _readyz(self, _: Request) -> Reply:
        return _state(self._view.ready())


def _state(why_not: str) -> Reply:
    return Reply(503, f"{why_not}\n".encode()) if why_not else Reply(200, b"ok\n")


def _json(value: Any) -> Reply:
    return Reply(200, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n", _JSON)


def plain_fleet(fleet: ir.Fleet) -> dict[str, Any]:
    """Return a fleet as plain values, key material and credentials left out."""
    plain: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(
            hide_fleet(fleet), clusters=tuple(fleet.clusters), secrets=(), limit_store=None
        )
    )
    plain["secrets"] = [
        {
            "name": one.name,
            "certificate": bool(one.certificate),
            "privateKey": bool(one.private_key),
            "ca": bool(one.ca),
            "staple": bool(one.staple),
        }
        for one in fleet.secrets
    ]
    store = fleet.limit_store
    if store is not None:
        plain["limit_store"] = {
            "kind": store.kind,
            "mode": store.mode,
            "addresses": store.addresses,
        }
    return plain
