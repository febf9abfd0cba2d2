"""edgefast as a site behind a login: one HTTPS Gateway, a policy with `oidc`, and a backend that shows what it gets.

In: a certificate, a provider and its client. Out: an origin. The route of OPEN has no policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from identity_provider.provider import Client
from identity_provider.site import OPEN, show
from identity_provider.user_agent import NAVIGATION, UserAgent
from identity_provider.web_server import Answer, Call, WebServer
from wire.harness import objects as make
from wire.harness.certificates import Pair
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

_USER = "x-user"


class EdgefastSite:
    """Use `stop` at the end. `ca` verifies providers with HTTPS. `calls` are the requests that reached the backend."""

    def __init__(
        self, host: str, pair: Pair, *, ca: bytes = b"", workers: int = 2, **oidc: Any
    ) -> None:
        self._pair, self._ca, self._oidc = pair, ca, oidc
        self.calls: list[Call] = []
        self._backend = WebServer(self._answer)
        self.port = free_port()
        self.origin = f"https://{host}:{self.port}"
        self.gateway = Gateway([], workers=workers)
        self.gateway.alone = True
        self.gateway.__enter__()

    def _answer(self, call: Call) -> Answer:
        self.calls.append(call)
        return show(call.headers.get(_USER, ""), call.path)

    def use(self, issuer: str, client: Client) -> None:
        """Apply a policy with this client, and wait until edgefast knows the provider."""
        self.apply(issuer, client)
        self.gateway.wait_until(lambda: self._uses(client.id), f"logins of {client.id} at {issuer}")

    def apply(self, issuer: str, client: Client, oidc: Mapping[str, Any] | None = None) -> None:
        """Apply a policy with this client and these fields of `oidc`; does not wait for the provider."""
        self.gateway.apply(self.objects(issuer, client, oidc or {}))

    def objects(self, issuer: str, client: Client, oidc: Mapping[str, Any]) -> list[make.Object]:
        """Return all objects."""
        provider_port = urlsplit(issuer).port
        assert provider_port is not None
        fields = {
            "provider": {"issuer": issuer, "backendRefs": [{"name": "provider", "port": 80}]},
            "clientID": client.id,
            "clientSecret": {"name": "client"},
            "scopes": ["email", "profile", "offline_access"],
            "claimToHeaders": [{"header": _USER, "claim": "sub"}],
            **self._oidc,
            **oidc,
        }
        route = {"group": make.GROUP, "kind": "HTTPRoute", "name": "private"}
        return [
            make.gateway("web", [make.listener(self.port, "tls", "", ["pair"])]),
            make.tls_secret("pair", self._pair.certificate, self._pair.key),
            make.secret("client", {"client-secret": client.secret.encode()}),
            make.route("private", [make.rule("backend")]),
            make.route("open", [make.rule("backend", matches=[make.path(OPEN, "Exact")])]),
            make.policy("SecurityPolicy", "login", {"targetRefs": [route], "oidc": fields}),
            *make.service("backend", [("127.0.0.1", self._backend.port)]),
            *make.service("provider", [("127.0.0.1", provider_port)]),
            *(self._trust(issuer) if issuer.startswith("https:") else ()),
        ]

    def _trust(self, issuer: str) -> list[make.Object]:
        name = urlsplit(issuer).hostname
        assert name is not None
        return [
            make.tls_policy("provider", name),
            make.config_map("ca", {"ca.crt": self._ca.decode()}),
        ]

    def _uses(self, client_id: str) -> bool:
        # New connections spread over the workers: enough of them must agree in a row.
        for _ in range(1 if self.gateway.workers == 1 else 12 * self.gateway.workers):
            with UserAgent() as agent:
                answer = agent.request("GET", f"{self.origin}/", headers=NAVIGATION)
            assert answer.status_code != 500, self.gateway.log_tail()  # the policy has an error
            if answer.status_code != 302 or client_id not in answer.headers["location"]:
                return False
        return True

    def stop(self) -> None:
        """End the gateway, with its checks, and the backend."""
        try:
            self.gateway.__exit__(None, None, None)
        finally:
            self._backend.close()
