"""A route whose requests are shown to an authorisation service, in one World.

In: what the service answers, fields of ir.ExtAuth. Out: the service, the backend behind it, a port. Who asks is the rule's own filter, a
policy's unit, or, where a test runs a second time for it (conftest.py), a filter of the listener. Must never: let a request pass by itself.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import msgspec

from core.backend import Answer, Backend, Call, make_response
from core.client import Client, Response, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir
from edgefast.ir.policy import AuthBackend, ExtAuth, PolicyUnit

AUTH = "service/ns/auth/80"
UNIT = "security/ns/policy#extAuth"
T = TypeVar("T")
FILTER = "listener/ns/gw/http#filters.requests[0]"
PLACE = "EDGEFAST_TEST_GUARD"  # "listener": its filter asks what rules ask otherwise; also in children (core/apart.py)

PASS = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
DENY = b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"


def make_auth(*clusters: str, **settings: Any) -> ExtAuth:
    """A question to these clusters; none: to the usual one."""
    backends = tuple(AuthBackend(cluster=name) for name in clusters or (AUTH,))
    return ExtAuth(backends=backends, **settings)


def make_unit(spec: ExtAuth, name: str = UNIT) -> PolicyUnit:
    """The same as a policy's unit."""
    return PolicyUnit(name=name, ext_auth=spec)


class Guarded:
    """A route with a guard, its service and its backend."""

    def __init__(self, world: World, service: Backend, backend: Backend) -> None:
        self.world = world
        self.service = service
        self.backend = backend
        self.port = 0
        self.seen: list[Call] = []

    async def client(self) -> Client:
        """A new connection."""
        return await self.world.client(self.port)

    async def ask(self, path: str = "/", **settings: Any) -> Response:
        """One request on a connection of its own."""
        client = await self.client()
        return await client.ask(make_request(path, **settings))


def fleet_of(
    spec: ExtAuth,
    backend: int,
    *services: ir.Cluster,
    http: dict[str, Any] | None = None,
    rule: dict[str, Any] | None = None,
    unit: bool = False,
    more: tuple[ir.Cluster, ...] = (),
) -> ir.Fleet:
    """A rule with this question, as its own filter or as a policy's unit, or one whose listener has it."""
    settings: dict[str, Any] = {"policies": (UNIT,)} if unit else {"ext_auth": spec}
    listener = make_listener(**(http or {}))
    if os.environ.get(PLACE) == "listener":
        listener, settings, unit = with_filters(listener, UNIT), {}, True
    fleet = make_fleet(
        listener,
        make_host(make_rule(**settings, **(rule or {}))),
        make_cluster(backend),
        *services,
        *more,
    )
    return msgspec.structs.replace(fleet, policies=(make_unit(spec),) if unit else ())


def of_a_rule(test: T) -> T:
    """Mark a test of what is different where a rule asks."""
    test.of_a_rule = True  # type: ignore[attr-defined]
    return test


def with_filters(listener: ir.Listener, *names: str) -> ir.Listener:
    """The listener with units of these names as its filters."""
    return msgspec.structs.replace(listener, filters=names)


async def guarded(
    world: World,
    answer: Answer | None = None,
    /,
    *,
    cluster: dict[str, Any] | None = None,
    **settings: Any,
) -> Guarded:
    """Serve it; `settings`: http, rule, unit, and fields of ir.ExtAuth."""
    shape = {key: settings.pop(key) for key in ("http", "rule", "unit", "more") if key in settings}
    service, backend = await world.backend(answer), await world.backend()
    made = Guarded(world, service, backend)

    def keep(call: Call) -> bytes:
        made.seen.append(call)
        return make_response(b"behind")

    backend.answer = keep
    auth = make_cluster(service.port, name=AUTH, **(cluster or {}))
    made.port = await world.serve(fleet_of(make_auth(**settings), backend.port, auth, **shape))
    return made


def passing(*headers: tuple[str, str], body: bytes = b"", status: int = 200) -> Answer:
    """A service that lets all pass."""
    data = make_response(body, status, headers)
    return lambda call: data


__all__ = [
    "AUTH",
    "CLUSTER",
    "DENY",
    "FILTER",
    "PASS",
    "PLACE",
    "UNIT",
    "Guarded",
    "fleet_of",
    "guarded",
    "make_auth",
    "make_unit",
    "of_a_rule",
    "passing",
    "with_filters",
]
