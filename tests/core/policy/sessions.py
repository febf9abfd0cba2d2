"""Sessions as clients hold them, and worlds in which endpoints keep them.

In: endpoints, times. Out: values, written here and not by the engine. Must never: ask the engine what a value is.
"""

from __future__ import annotations

import time

from core.backend import Backend, make_response
from core.client import Client, Response, make_request
from core.fleets import CLUSTER
from core.policy.policies import TRAFFIC
from core.world import World
from edgefast import ir
from edgefast._csrc import lib

NAME = "sid"
BY_COOKIE = ir.SessionPersistence(name=NAME)
BY_HEADER = ir.SessionPersistence(name="x-sid", header=True)


def keeping(one: ir.SessionPersistence, name: str = TRAFFIC) -> ir.PolicyUnit:
    """A unit that says it."""
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(session=one))


def now_ms(later: float = 0) -> int:
    """Milliseconds since 1970, so many seconds later."""
    return int((time.time() + later) * 1000)


def write(port: int, *, until: int = 0, idle: int = 0, cluster: str = CLUSTER) -> str:
    """The value of a session with an endpoint."""
    named = f"session/1\0{cluster}\x00127.0.0.1:{port}".encode()
    return f"1{lib.ef_pick_key(named, len(named)):016x}{until:012x}{idle:012x}"


async def numbered(world: World, count: int) -> list[Backend]:
    """Backends that answer with their number."""
    return [
        await world.backend(lambda call, at=at: make_response(b"%d" % at)) for at in range(count)
    ]


def told(answer: Response) -> str:
    """The value that an answer's cookie has."""
    (line,) = [value for name, value in answer.headers if name == "set-cookie"]
    pair = line.partition(";")[0]
    assert pair.startswith(f"{NAME}=")
    return pair.partition("=")[2]


async def get(client: Client, *values: str, path: str = "/", method: str = "GET") -> Response:
    """Ask with these sessions, each in a field of its own."""
    cookies = [("cookie", f"a=b; {NAME}={one}") for one in values]
    return await client.ask(make_request(path, method=method, headers=cookies))
