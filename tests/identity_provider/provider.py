"""The interface of all providers of these tests, and the clients that they register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
