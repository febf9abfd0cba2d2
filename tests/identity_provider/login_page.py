"""The login form of the providers that have no pages of their own."""

from __future__ import annotations

from identity_provider.web_server import Answer

_FORM = (
    "<!doctype html><title>Sign in</title><link rel=icon href=data:,><form method=post>"
    "<input name=username><input name=password type=password><button>Sign in</button></form>"
)


def login_page() -> Answer:
    """Return the page; it posts to its own URL."""
    return Answer(200, _FORM.encode(), {"content-type": "text/html; charset=utf-8"})
