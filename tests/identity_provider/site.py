"""A site behind a login, as tests see it: the application of these tests, or edgefast in front of a backend.

A site has an HTTPS origin. Each path but CALLBACK, LOGOUT and OPEN is behind the login; a page shows its user and path.
"""

from __future__ import annotations

import html
import json
from typing import Protocol

from identity_provider.provider import Client
from identity_provider.web_server import Answer

CALLBACK = "/oauth2/callback"
LOGOUT = "/logout"
AFTER_LOGOUT = "/"
OPEN = "/open"  # a page without a login
LOGINS = 8  # of one browser at once; the oldest is dropped


class Site(Protocol):
    """A running site."""

    origin: str

    def use(self, issuer: str, client: Client) -> None:
        """Sign users in at this provider from now on; sessions of another client end."""
        ...

    def stop(self) -> None:
        """End the site."""
        ...


def show(user: str, path: str) -> Answer:
    """Return a page that names its user and its path."""
    shown = html.escape(json.dumps({"user": user, "path": path}), quote=False)
    body = f"<!doctype html><link rel=icon href=data:,><title>Shop</title><pre>{shown}</pre>"
    headers = {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"}
    return Answer(200, body.encode(), headers)
