"""A route whose clients prove who they are, in one World.

In: the parts of a unit. Out: a client, what the backend was asked. Must never: judge a request itself.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha1, sha256
from typing import Any

import bcrypt
import msgspec

from core.backend import Call, make_response
from core.client import Client
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir
from edgefast.auth import htpasswd
from origin.message import Message

KEYS = "security/ns/p#apiKeyAuth"
PASSWORDS = "security/ns/p#basicAuth"


def make_keys(*places: str, **settings: Any) -> ir.PolicyUnit:
    """A unit with alice's key "k-alice" and bob's "k-bob"; places: "header:x-key", "cookie:key", "param:key"."""
    found: dict[str, list[str]] = {"header": [], "cookie": [], "param": []}
    for place in places or ("header:x-key",):
        kind, _, name = place.partition(":")
        found[kind].append(name)
    clients = tuple(sorted((sha256(f"k-{one}".encode()).digest(), one) for one in ("alice", "bob")))
    named = tuple((one, "Bearer " if one == "authorization" else "") for one in found["header"])
    at = ir.CredentialExtractors(
        headers=named, cookies=tuple(found["cookie"]), params=tuple(found["param"])
    )
    return ir.PolicyUnit(name=KEYS, api_key=ir.ApiKeyAuth(clients=clients, places=at, **settings))


def sha(password: str) -> str:
    """The quick hash."""
    return "{SHA}" + b64encode(sha1(password.encode()).digest()).decode()


def slow(password: str) -> str:
    """bcrypt at its least cost."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def apr1(password: str) -> str:
    """Apache's own."""
    salt = b"saltsalt"
    digest = htpasswd._digest_apr1(password.encode(), salt)
    return htpasswd._write_apr1(salt, digest).decode()


def make_passwords(forward: str = "", **users: str) -> ir.PolicyUnit:
    """A unit with these users' hashes."""
    return ir.PolicyUnit(
        name=PASSWORDS,
        basic=ir.BasicAuth(users=tuple(sorted(users.items())), forward_header=forward),
    )


def basic(user: str, password: str) -> tuple[str, str]:
    """The header line."""
    return "authorization", "Basic " + b64encode(f"{user}:{password}".encode()).decode()


class Proving:
    """A route, what its backend has seen."""

    def __init__(self, world: World, port: int) -> None:
        self.world = world
        self.port = port
        self.seen: list[Message] = []

    async def client(self) -> Client:
        """A new connection."""
        return await self.world.client(self.port)


async def prove(
    world: World,
    *units: ir.PolicyUnit,
    rule: dict[str, Any] | None = None,
    more: tuple[ir.Cluster, ...] = (),
    tracing: ir.Tracing | None = None,
    log: ir.AccessLog | None = None,
    **http: Any,
) -> Proving:
    """Serve a route with these units."""
    backend = await world.backend()
    made = Proving(world, 0)

    def keep(call: Call) -> bytes:
        made.seen.append(call.message)
        return make_response(b"behind")

    backend.answer = keep
    told = {"policies": tuple(one.name for one in units), **(rule or {})}
    made.port = await world.serve(
        make_fleet(
            msgspec.structs.replace(make_listener(log=log, **http), tracing=tracing),
            make_host(make_rule(**told)),
            make_cluster(backend.port),
            *more,
            *units,
        )
    )
    return made
