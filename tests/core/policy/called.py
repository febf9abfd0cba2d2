"""A route whose requests are shown to an authorisation service of gRPC, in one World.

In: what the service answers (bytes of a message, or a function of a call), fields of ir.ExtAuth. Out: the service, the backend behind it, a
port. Must never: let a request pass by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.backend import Backend, Call, make_response
from core.client import Client, Response, make_request
from core.fleets import make_cluster
from core.h2.backend import Ask, H2Backend
from core.policy.authorized import AUTH, fleet_of, make_auth
from core.policy.checkmessages import frame, read_request
from core.world import World

CALLED = f"{AUTH}/h2"
HEAD = (("content-type", "application/grpc"),)
OK = (("grpc-status", "0"),)

Act = Callable[[Ask], None]


def say(message: bytes, *trailers: tuple[str, str]) -> Act:
    """A whole answer."""

    def act(ask: Ask) -> None:
        ask.head(200, *HEAD)
        ask.data(frame(message))
        ask.trail(*(trailers or OK))

    return act


class Called:
    """A route with a guard, its service and its backend."""

    def __init__(self, world: World, service: H2Backend, backend: Backend) -> None:
        self.world = world
        self.service = service
        self.backend = backend
        self.port = 0
        self.seen: list[Call] = []

    def answer(self, act: Act | bytes) -> None:
        """What it says from now on."""
        self.service.answer = say(act) if isinstance(act, bytes) else act

    async def client(self) -> Client:
        """A new connection."""
        return await self.world.client(self.port)

    async def ask(self, path: str = "/", **settings: Any) -> Response:
        """One request on a connection of its own."""
        client = await self.client()
        await client.send(make_request(path, **settings))
        return await client.response(head=settings.get("method") == "HEAD")

    def question(self) -> Any:
        """The last one that it was asked."""
        return read_request(self.service.asks[-1].body)


async def called(world: World, act: Act | bytes | None = None, **settings: Any) -> Called:
    """Serve it; `settings`: http, rule, unit, more, and fields of ir.ExtAuth."""
    shape = {key: settings.pop(key) for key in ("http", "rule", "unit", "more") if key in settings}
    service = await H2Backend().start()
    world.keep(service)
    backend = await world.backend()
    made = Called(world, service, backend)
    if act is not None:
        made.answer(act)

    def keep(call: Call) -> bytes:
        made.seen.append(call)
        return make_response(b"" if call.message.method == b"HEAD" else b"behind")

    backend.answer = keep
    auth = make_cluster(service.port, name=CALLED, protocol="h2")
    spec = make_auth(CALLED, grpc=True, **settings)
    made.port = await world.serve(fleet_of(spec, backend.port, auth, **shape))
    return made
