"""A worker's requests for tokens: each is answered or given up, and their number is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from edgefast.auth.oidc.login_client import TokenCall
from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.proxy.control.messages import Tokens, TokensWanted
from edgefast.proxy.worker.token_calls import CALLS, DEADLINE, TokenCalls
from tests.proxy.jwks.virtual import run_virtually


def test_requests_and_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sent: list[TokensWanted] = []

        async def send(message: TokensWanted) -> None:
            sent.append(message)

        calls, told = TokenCalls(send), []  # type: ignore[var-annotated]
        running = asyncio.create_task(calls.run())

        def note(name: str) -> Any:
            return lambda word, response: told.append((name, word, response))

        call = TokenCall(code="c", redirect_uri="u", verifier="v")
        first, second, third, fourth = (calls.ask("unit", call, note(one)) for one in "abcd")
        calls.cancel(second)
        await asyncio.sleep(0.1)
        assert [one.number for one in sent] == [first, third, fourth]
        assert sent[0] == TokensWanted(first, "unit", "c", "u", "v", "")
        good = TokenResponse("i", "a", "r", 1)
        calls.take(Tokens(first, "", msgspec.msgpack.encode(good)))
        calls.take(Tokens(first, "", msgspec.msgpack.encode(good)))
        calls.take(Tokens(second, "", msgspec.msgpack.encode(good)))
        calls.take(Tokens(third, "", b"junk"))
        assert told == [("a", "", good), ("c", "provider", None)]
        await asyncio.sleep(DEADLINE + 1)
        assert told[2:] == [("d", "provider", None)]
        assert all(calls.ask("unit", call, note("x")) for _ in range(CALLS))
        assert calls.ask("unit", call, note("x")) == 0
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtually(main(), monkeypatch)
