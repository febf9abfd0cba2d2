"""The certified provider `oidc-provider` of npm, with the pages of node/provider.mjs.

In: settings. Out: an issuer on loopback that accepts any user name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from identity_provider.node_programs import node_command
from identity_provider.process import ServerProcess
from identity_provider.provider import Client, register_client

START = 60.0  # seconds: Node on a busy machine
_DEADLINE = 60.0  # seconds for one answer


class CertifiedProvider:
    """Use `stop` at the end. `access_token_seconds` is how long access tokens and ID tokens are valid."""

    def __init__(
        self,
        folder: Path,
        *,
        access_token_seconds: int = 3600,
        rotate_refresh_tokens: bool = True,
    ) -> None:
        settings: dict[str, Any] = {
            "accessTokenSeconds": access_token_seconds,
            "rotateRefreshTokens": rotate_refresh_tokens,
        }
        self.issuer = ""
        command = [*node_command("provider.mjs"), json.dumps(settings)]
        self._process = ServerProcess(command, folder)
        try:
            self._process.wait_until(self._is_ready, START)
        except BaseException:
            self.stop()
            raise

    def _is_ready(self) -> bool:
        found = re.search(r"^issuer (\S+)\n", self._process.log_tail(), re.M)
        self.issuer = found[1] if found else ""
        return found is not None

    def register(self, redirect_uri: str, after_logout: str) -> Client:
        """Register a client; see `IdentityProvider`."""
        return register_client(f"{self.issuer}/reg", redirect_uri, after_logout, _DEADLINE)

    def stop(self) -> None:
        """End the process."""
        self._process.stop()
