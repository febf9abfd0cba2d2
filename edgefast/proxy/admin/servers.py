"""Binding of the operator's servers, before any other component starts.

In: settings.
Out: HttpServers on bound sockets, or ServerTaken with the option, the address and the fix.
Must never: keep some of the sockets when one address is not available.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping

from edgefast.diagnostics.problem import Problem
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import ControlSocket
from edgefast.httpd.server import HttpServer, bind_server
from edgefast.proxy.admin.admin import PROBES, Admin
from edgefast.proxy.admin.control_commands import ORDERS, ControlCommands
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.inherited import Inherited

__all__ = ["ServerTaken", "bind_servers", "make_orders", "make_servers"]

#: Port of the pod's shutdown-manager (controller/fleets/placement.py), beside the proxy.
_SHUTDOWN_PORT = 19002


class ServerTaken(Exception):
    """An operator's address cannot be had; the text says which option to change."""


def bind_servers(
    settings: ProxySettings, inherited: Inherited | None = None
) -> dict[str, socket.socket]:
    """Bind admin, metrics and ready, or take them from what was inherited; raises ServerTaken.

    Switched off ones are left out.
    """
    inherited = inherited or Inherited()
    bound: dict[str, socket.socket] = {}
    for name in ("admin", "metrics", "ready"):
        address: Address | None = getattr(settings, name)
        if address is None:
            continue
        try:
            bound[name] = inherited.take_server(address) or bind_server(address)
        except OSError as error:
            for sock in bound.values():
                sock.close()
            raise ServerTaken(_explain(name, address, error)) from None
    inherited.close_servers()
    return bound


def make_servers(agent: Agent, bound: dict[str, socket.socket]) -> dict[str, HttpServer]:
    """Make a server for every bound socket; a service manager keeps the sockets like those of listeners."""
    agent.ports.server_sockets = {name: (sock.fileno(),) for name, sock in bound.items()}
    ports = {name: sock.getsockname()[1] for name, sock in bound.items()}
    if agent.settings.pod:  # tenants choose the backends
        agent.listeners.server_ports = (*ports.values(), _SHUTDOWN_PORT)
    elif "admin" in ports:
        agent.listeners.server_ports = (ports["admin"],)
    admin = Admin(agent)
    return {
        # Admin is asked by people and tools of this machine, the others under any name there is.
        name: HttpServer(sock, getattr(admin, name), probes=PROBES, any_host=name != "admin")
        for name, sock in bound.items()
    }


def make_orders(agent: Agent, servers: Mapping[str, HttpServer]) -> ControlSocket | None:
    """Return the control socket, named after the admin address; None without an admin address."""
    admin = servers.get("admin")
    if admin is None:
        return None
    made = ControlSocket(admin.address, ControlCommands(agent).routes, probes=ORDERS)
    agent.order_problems = lambda: _explain_orders(made)
    made.on_trouble = lambda: agent.on_problems(agent.problems)
    return made


def _explain_orders(server: ControlSocket) -> tuple[Problem, ...]:
    if not server.trouble:
        return ()
    effect = "`edgefast shutdown`, a preStop hook and `edgefast log-level` have no effect"
    hint = "end the process that has the name, or choose another --admin address"
    return (Problem(None, "", "OrdersNotServed", f"{server.trouble}; {effect}", hint=hint),)


def _explain(name: str, address: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"--{name} {address} is in use, perhaps by another edgefast: choose another address, "
            f"or --{name} off; edgefast run --take-over replaces one that serves"
        )
    return f"--{name} {address}: {os.strerror(error.errno or 0)}; choose another address, or off"
