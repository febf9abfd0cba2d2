"""Keycloak with a database in memory: one realm with one user.

In: nothing. Out: an issuer on loopback. A start takes 20 s to 60 s and 0.5 GB: for heavy tests.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import httpx

from identity_provider.keycloak_program import OPTIONS, keycloak_home
from identity_provider.process import ServerProcess
from identity_provider.provider import PASSWORD, USER, Client
from wire.harness.ports import free_port

START = 400.0  # seconds, on a machine with ten times the load that it has CPUs
_DEADLINE = 60.0  # seconds for one answer
_HEAP = "-Xms64m -Xmx384m"
_QUICK_START = "-XX:TieredStopAtLevel=1"  # the second compiler takes longer than a test
_REALM = "test"
_USER_DOCUMENT = {
    "username": USER,
    "enabled": True,
    "email": f"{USER}@example.com",
    "emailVerified": True,
    "firstName": "Ann",
    "lastName": "Example",
    "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
}


class Keycloak:
    """Use `stop` at the end. `access_token_seconds` is how long access tokens and ID tokens are valid."""

    def __init__(self, folder: Path, *, access_token_seconds: int = 300) -> None:
        home = keycloak_home()
        port = free_port()
        self._url = f"http://localhost:{port}"
        self.issuer = f"{self._url}/realms/{_REALM}"
        self._password = secrets.token_urlsafe(16)
        environment = {
            "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": self._password,
            "JAVA_OPTS_APPEND": _QUICK_START,
            "JAVA_OPTS_KC_HEAP": _HEAP,
        }
        command = [str(home / "bin" / "kc.sh"), "start", "--optimized", "--http-enabled=true"]
        command += [f"--hostname={self._url}", "--http-host=127.0.0.1", f"--http-port={port}"]
        self._process = ServerProcess([*command, *OPTIONS], folder, environment=environment)
        try:
            self._process.wait_until(self._is_ready, START)
            self._admin("/admin/realms", _realm(access_token_seconds))
            # A user of the realm's own document has no default roles, and may not get refresh tokens.
            self._admin(f"/admin/realms/{_REALM}/users", _USER_DOCUMENT)
        except BaseException:
            self.stop()
            raise

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self._url}/realms/master", timeout=_DEADLINE).status_code == 200
        except httpx.TransportError:
            return False

    def _admin(self, path: str, body: dict[str, Any]) -> None:
        answer = httpx.post(
            f"{self._url}/realms/master/protocol/openid-connect/token",
            data={
                "grant_type": "password",
                "client_id": "admin-cli",
                "username": "admin",
                "password": self._password,
            },
            timeout=_DEADLINE,
        )
        assert answer.status_code == 200, answer.text
        bearer = {"authorization": f"Bearer {answer.json()['access_token']}"}
        answer = httpx.post(f"{self._url}{path}", json=body, headers=bearer, timeout=_DEADLINE)
        assert answer.status_code == 201, answer.text

    def register(self, redirect_uri: str, after_logout: str) -> Client:
        """Register a client; see `IdentityProvider`."""
        name, secret = f"client-{secrets.token_hex(4)}", secrets.token_urlsafe(24)
        client = {
            "clientId": name,
            "secret": secret,
            "protocol": "openid-connect",
            "redirectUris": [redirect_uri],
            "standardFlowEnabled": True,
            "publicClient": False,  # the secret is checked
            "attributes": {
                "post.logout.redirect.uris": after_logout,
                "pkce.code.challenge.method": "S256",
            },
        }
        self._admin(f"/admin/realms/{_REALM}/clients", client)
        return Client(name, secret, redirect_uri, after_logout)

    def stop(self) -> None:
        """End the process."""
        self._process.stop()


def _realm(access_token_seconds: int) -> dict[str, Any]:
    return {"realm": _REALM, "enabled": True, "accessTokenLifespan": access_token_seconds}
