"""Ory Hydra with a database in memory, and the pages for login, consent and logout that it leaves to its operator.

In: nothing. Out: an issuer on loopback that accepts any user name. Must never send usage reports: telemetry is off.
"""

from __future__ import annotations

from pathlib import Path

import httpx

from identity_provider.hydra_pages import HydraPages
from identity_provider.process import ServerProcess
from identity_provider.provider import Client, register_client
from wire.harness.go_programs import go_program
from wire.harness.ports import free_port

START = 60.0  # seconds: the migrations of its database
_DEADLINE = 60.0  # seconds for one answer


class Hydra:
    """Use `stop` at the end. `access_token_seconds` is how long access tokens and ID tokens are valid."""

    def __init__(self, folder: Path, *, access_token_seconds: int = 3600) -> None:
        public, admin = free_port(), free_port()
        self.issuer = f"http://localhost:{public}"
        self._admin = f"http://127.0.0.1:{admin}"
        self._pages = HydraPages(self._admin)
        environment = {
            "DSN": "memory",
            "SERVE_PUBLIC_HOST": "127.0.0.1",
            "SERVE_PUBLIC_PORT": str(public),
            "SERVE_ADMIN_HOST": "127.0.0.1",
            "SERVE_ADMIN_PORT": str(admin),
            "URLS_SELF_ISSUER": self.issuer,
            "URLS_LOGIN": f"{self._pages.url}/login",
            "URLS_CONSENT": f"{self._pages.url}/consent",
            "URLS_LOGOUT": f"{self._pages.url}/logout",
            "SECRETS_SYSTEM": "the secret of a test on loopback",
            "TTL_ACCESS_TOKEN": f"{access_token_seconds}s",
            "TTL_ID_TOKEN": f"{access_token_seconds}s",
            "OAUTH2_PKCE_ENFORCED": "true",
            "LOG_LEVEL": "warn",
            "SQA_OPT_OUT": "true",
        }
        command = [go_program("hydra"), "serve", "all", "--dev", "--sqa-opt-out"]
        self._process = ServerProcess(command, folder, environment=environment)
        try:
            self._process.wait_until(self._is_ready, START)
        except BaseException:
            self.stop()
            raise

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self._admin}/health/ready", timeout=_DEADLINE).status_code == 200
        except httpx.TransportError:
            return False

    def register(self, redirect_uri: str, after_logout: str) -> Client:
        """Register a client; see `IdentityProvider`."""
        return register_client(
            f"{self._admin}/admin/clients", redirect_uri, after_logout, _DEADLINE
        )

    def stop(self) -> None:
        """End the process and the pages."""
        self._process.stop()
        self._pages.stop()
