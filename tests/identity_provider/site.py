"""A site behind a login, as tests see it: the application of these tests, or edgefast in front of one.

A site has an HTTPS origin, a callback path, a logout path, and a page that is open to all. A page behind the login shows
its user and its path as JSON.
"""

from __future__ import annotations

from typing import Protocol

from identity_provider.provider import Client


class Site(Protocol):
    """A running site."""

    origin: str

    def use(self, issuer: str, client: Client) -> None:
        """Sign users in at this provider from now on; a test begins without sessions."""
        ...

    def stop(self) -> None:
        """End the site."""
        ...
