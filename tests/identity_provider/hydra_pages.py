"""The pages that Hydra's operator writes: a login form; consent and logout are accepted at once.

Each page reports to Hydra's admin API, and redirects to the URL of its answer.
"""

from __future__ import annotations

from typing import Any

import httpx

from identity_provider.login_page import login_page
from identity_provider.web_server import Answer, Call, WebServer

_DEADLINE = 60.0  # seconds for one answer


class HydraPages:
    """A server on loopback; `url` is its address without a path."""

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self._server = WebServer(self._answer)
        self.url = f"http://localhost:{self._server.port}"

    def _answer(self, call: Call) -> Answer:
        kind = call.path.strip("/")
        challenge = call.query.get(f"{kind}_challenge", "")
        if not challenge:
            return Answer(404)
        asked = self._ask("GET", kind, challenge)
        if kind == "login":
            user = asked["subject"] if asked["skip"] else call.form.get("username", "")
            if not user:
                return login_page()
            remember = {} if asked["skip"] else {"remember": True, "remember_for": 3600}
            return self._accept(kind, challenge, subject=user, **remember)
        if kind == "consent":
            claims = {"email": f"{asked['subject']}@example.com", "groups": ["staff"]}
            return self._accept(
                kind,
                challenge,
                grant_scope=asked["requested_scope"],
                grant_access_token_audience=asked["requested_access_token_audience"],
                session={"id_token": claims},
            )
        return self._accept(kind, challenge)

    def _accept(self, kind: str, challenge: str, **body: Any) -> Answer:
        told = self._ask("PUT", kind, challenge, "/accept", **body)
        return Answer(303, headers={"location": told["redirect_to"]})

    def _ask(self, method: str, kind: str, challenge: str, step: str = "", **body: Any) -> Any:
        answer = httpx.request(
            method,
            f"{self._admin}/admin/oauth2/auth/requests/{kind}{step}",
            params={f"{kind}_challenge": challenge},
            json=body or None,
            timeout=_DEADLINE,
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def stop(self) -> None:
        """Close the port."""
        self._server.close()
