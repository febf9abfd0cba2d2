"""The proxy that the case files are played against: one listener per group of settings, all before the same origin.

In: the origin's port. Out: a `Gateway` and `LISTENERS`, the names that case files use in `listener:`. One worker, because a
probe can only tell the turn of the worker it reaches.
"""

from __future__ import annotations

from typing import Any

from wire.harness import objects as make
from wire.harness.client import Address
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

PATIENT = {"headTimeout": "120s"}  # byte by byte takes its time on a busy machine
LISTENERS: dict[str, dict[str, Any]] = {
    "web": {},
    "underscores-allow": {"underscores": "Allow"},
    "underscores-drop": {"underscores": "DropHeader"},
    "slashes-keep": {"escapedSlashes": "KeepUnchanged"},
    "slashes-reject": {"escapedSlashes": "Reject"},
    "raw-reject": {"rawCharacters": "Reject"},
    "parameters-strip": {"pathParameters": "strip"},
    "small": {"requestHead": 1024, "requestLine": 512, "headerCount": 10, "bodySize": 1000},
}


class CaseGateway(Gateway):
    """A gateway with all the listeners that cases name."""

    def __init__(self, origin_port: int) -> None:
        self.ports = {name: free_port() for name in LISTENERS}
        objects: list[make.Object] = make.service("origin", [("127.0.0.1", origin_port)])
        for name, http in LISTENERS.items():
            objects.append(make.gateway(name, [make.listener(self.ports[name])], name))
            objects.append(make.route(name, [make.rule("origin")], parent=name))
            objects.append(make.edge_proxy(name, {**PATIENT, **http}))
        super().__init__(objects)

    def address(self, listener: str) -> Address:
        """Where a case is sent."""
        return ("127.0.0.1", self.ports[listener])
