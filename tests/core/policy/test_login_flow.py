"""Logins that wait: for the metadata of the provider, then for tokens."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from edgefast.auth.oidc.provider_metadata import ProviderMetadata, write_provider
from edgefast.core.policy.login_flow import Decision, LoginFlow, ProviderWait
from edgefast.core.policy.login_services import LoginServices
from edgefast.core.policy.token_verification import TokenVerifier
from edgefast.proxy.control.messages import CancelTokens, Tokens, TokensWanted
from edgefast.proxy.worker.token_calls import TokenCalls
from tests.auth.oidc.ring import ISSUER, Ring, oidc, request

NOW = 1_900_000_000.0
SOURCE = f"{ISSUER}/.well-known/openid-configuration", "", ISSUER
PROVIDER = write_provider(
    ProviderMetadata(ISSUER, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/keys"), b""
)


class Worker:
    """Flows of one worker process, and what it sends to the agent."""

    def __init__(self, ring: Ring) -> None:
        self.sent: list[TokensWanted | CancelTokens] = []
        self.tokens = TokenCalls(self._send)
        self.verifier = TokenVerifier(asyncio.get_running_loop(), lambda source: None)
        services = LoginServices(ring, self.tokens, lambda: NOW)
        self.flow = LoginFlow("security/default/login#oidc", oidc(), services, self.verifier)
        self.decisions: list[Decision] = []
        self.task = asyncio.create_task(self.tokens.run())

    async def _send(self, message: TokensWanted | CancelTokens) -> None:
        self.sent.append(message)

    def decide(self, path: str, cookies: dict[str, str]) -> Any:
        return self.flow.decide(request(path, cookies), self.decisions.append, b"client")

    def learn(self) -> None:
        """Take the provider's metadata from the agent."""
        self.verifier.remote.use(SOURCE, PROVIDER)


def begin(worker: Worker) -> tuple[str, dict[str, str]]:
    """Return the path of a callback, and the cookies of the browser."""
    worker.learn()
    found = worker.decide("/", {})
    assert isinstance(found, Decision) and found.reply is not None
    state = parse_qs(urlsplit(found.reply.location).query)["state"][0]
    name, _, value = found.cookies[0].partition(";")[0].partition("=")
    return f"/oauth2/callback?{urlencode({'code': 'c', 'state': state})}", {name: value}


@pytest.mark.parametrize("ends", ["answered", "cancelled early", "cancelled late"])
def test_a_callback_waits_for_the_provider_and_then_for_tokens(ends: str) -> None:
    async def main() -> None:
        ring = Ring()
        path, cookies = begin(Worker(ring))
        worker = Worker(ring)  # another one, that has just started
        wait = worker.decide(path, cookies)
        assert isinstance(wait, ProviderWait) and worker.flow.awaited == 1
        if ends == "cancelled early":
            wait.cancel()
        worker.learn()
        await asyncio.sleep(0)
        assert worker.flow.awaited == 0
        if ends == "cancelled early":
            assert worker.sent == []
            return
        (wanted,) = worker.sent
        assert isinstance(wanted, TokensWanted) and wanted.code == "c"
        if ends == "cancelled late":
            wait.cancel()
            await asyncio.sleep(0)
            assert worker.sent[1:] == [CancelTokens(wanted.number)]
        worker.tokens.take(Tokens(wanted.number, "rejected"))
        assert len(worker.decisions) == (ends == "answered")
        if ends == "answered":
            reply = worker.decisions[0].reply
            assert reply is not None and (reply.status, reply.word) == (403, "code")

    asyncio.run(main())
