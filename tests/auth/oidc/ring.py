"""A ring of secrets for cookies, whose times a test sets, and chance that is the same each time."""

from __future__ import annotations

import random
from typing import NamedTuple

from edgefast.auth.oidc.login_client import LoginClient, LoginRequest
from edgefast.ir import Oidc, RemoteKeys

ISSUER = "https://idp.example.com"


class Secret(NamedTuple):
    secret: bytes
    begins: int
    ends: int
    forgotten: int


class Ring:
    """One current secret, and the one before."""

    def __init__(self) -> None:
        self.clock = 5_000
        self.count = 1
        self.held = [Secret(b"0" * 32, 0, 10_000, 20_000)]

    def rotate(self) -> None:
        self.count += 1
        begins = self.held[-1].ends
        fresh = Secret(b"%d" % (self.count % 10) * 32, begins, begins + 10_000, begins + 20_000)
        self.held = [*self.held[-1:], fresh]
        self.clock = begins + 1

    def generation(self) -> int:
        return self.count

    def secrets(self) -> list[Secret]:
        return self.held

    def now(self) -> int:
        return self.clock


def chance(seed: int = 1) -> random.Random:
    return random.Random(seed)


def oidc(**more: object) -> Oidc:
    fields: dict[str, object] = {
        "remote": RemoteKeys(f"{ISSUER}/.well-known/openid-configuration", issuer=ISSUER),
        "client_id": "shop",
        "client_secret": b"secret",
        **more,
    }
    return Oidc(**fields)  # type: ignore[arg-type]


def client(ring: Ring | None = None, **more: object) -> LoginClient:
    return LoginClient(oidc(**more), ring or Ring(), chance().randbytes)


def request(path: str = "/", cookies: dict[str, str] | None = None, **more: object) -> LoginRequest:
    target, _, query = path.partition("?")
    fields: dict[str, object] = {
        "method": "GET",
        "origin": "https://shop.example.com",
        "path": target,
        "query": query,
        "target": path,
        "headers": {"sec-fetch-mode": "navigate"},
        "cookies": cookies or {},
        **more,
    }
    return LoginRequest(**fields)  # type: ignore[arg-type]
