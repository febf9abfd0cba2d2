"""The interface of all providers of these tests, and the clients that they register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import httpx

#: Every provider of these tests accepts this user; providers without accounts accept any name.
USER = "ann"
PASSWORD = "correct horse battery staple"  # of a test, on loopback


@dataclass(frozen=True)
class Client:
    """One registered client: its credentials and the addresses that it may name."""

    id: str
    secret: str
    redirect_uri: str
    after_logout: str


class IdentityProvider(Protocol):
    """A running provider."""

    issuer: str

    def register(self, redirect_uri: str, after_logout: str) -> Client:
        """Register a confidential client of the code flow with refresh tokens."""
        ...

    def stop(self) -> None:
        """End the process; every connection to it ends."""
        ...


def register_client(url: str, redirect_uri: str, after_logout: str, deadline: float) -> Client:
    """Register a client at a registration endpoint (RFC 7591); `deadline`: seconds."""
    answer = httpx.post(
        url,
        json={
            "redirect_uris": [redirect_uri],
            "post_logout_redirect_uris": [after_logout],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "scope": "openid offline_access email profile",
            "token_endpoint_auth_method": "client_secret_basic",
        },
        timeout=deadline,
    )
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return Client(made["client_id"], made["client_secret"], redirect_uri, after_logout)
