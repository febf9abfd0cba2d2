"""ControlCommands: the commands of a proxy's control socket: drain, the preStop hook's drain, the log level.

In: the agent.
Out: routes for the `ControlSocket` (edgefast/httpd/control_socket.py).
Must never: be routes of a TCP server, because backends of tenants may refer to its address.
"""

from __future__ import annotations

import msgspec

from edgefast.httpd.server import Handler, Reply, Request
from edgefast.proxy.agent.agent import Agent

__all__ = ["ORDERS", "ControlCommands"]

#: Paths, all POST.
ORDERS = ("/drain", "/healthcheck/fail", "/log-level")


class ControlCommands:
    """Handlers of one agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def routes(self) -> dict[tuple[str, str], Handler]:
        """Routes of the control socket."""
        handlers = (self._on_drain, self._on_healthcheck_fail, self._on_set_log_level)
        return {("POST", path): one for path, one in zip(ORDERS, handlers, strict=True)}

    async def _on_drain(self, _: Request) -> Reply:
        began = self._agent.drain.order("order of the operator")
        return Reply(202 if began else 200, b"draining\n")

    async def _on_healthcheck_fail(self, _: Request) -> Reply:
        """The order of a preStop hook: a SIGTERM follows, which does not count as a second one."""
        began = self._agent.drain.order("order of a preStop hook", expected=True)
        return Reply(202 if began else 200, b"draining\n")

    async def _on_set_log_level(self, request: Request) -> Reply:
        level = request.query.get("level") or request.body.decode("utf-8", "replace").strip()
        try:
            self._agent.set_log_level(level)
        except ValueError as error:
            return Reply(400, f"{error}\n".encode())
        return Reply(200, msgspec.json.encode({"level": level}) + b"\n", "application/json")
