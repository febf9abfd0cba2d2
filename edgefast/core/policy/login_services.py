"""Login services: what logins of policies with `oidc` need of the worker's process.

In: keys for cookies, a way to the agent. Out: the same, for login_flow.py. A worker without such a
policy loads nothing else of logins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from edgefast.auth.oidc.cookie_cipher import SecretRing
    from edgefast.auth.oidc.login_client import TokenCall
    from edgefast.auth.oidc.token_response import TokenResponse

__all__ = ["LoginServices", "TokenSource"]


class TokenSource(Protocol):
    """Where tokens come from (proxy/worker/token_calls.py)."""

    def ask(
        self,
        unit: str,
        scope: bytes,
        client: bytes,
        call: TokenCall,
        callback: Callable[[str, TokenResponse | None], object],
    ) -> int:
        """Request tokens for the client of this scope, for a browser at `client`; 0: too many requests wait."""

    def cancel(self, number: int) -> None:
        """Call back no more."""


class LoginServices(NamedTuple):
    """What logins need of the worker's process."""

    ring: SecretRing
    tokens: TokenSource
    clock: Callable[[], float] = time.time
