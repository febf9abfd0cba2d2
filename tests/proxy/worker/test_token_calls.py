"""A worker's requests for tokens: each is answered or given up, and their number is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from edgefast.auth.oidc.login_client import TokenCall
from edgefast.auth.oidc.login_state import start_state
from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.proxy.control.messages import CancelTokens, Tokens, TokensWanted
from edgefast.proxy.worker.token_calls import (
    CALLS,
    DEADLINE,
    NAMESPACE_CALLS,
    TokenCalls,
)
from tests.proxy.jwks.virtual import run_virtually


def test_requests_and_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sent: list[TokensWanted | CancelTokens] = []

        async def send(message: TokensWanted | CancelTokens) -> None:
            sent.append(message)

        calls, told = TokenCalls(send), []  # type: ignore[var-annotated]
        running = asyncio.create_task(calls.run())

        def note(name: str) -> Any:
            return lambda word, response: told.append((name, word, response))

        call = TokenCall(code="c", redirect_uri="u", verifier="v")
        first, second, third, fourth = (
            calls.ask("unit", b"scope", b"client", call, note(one)) for one in "abcd"
        )
        calls.cancel(second)
        await asyncio.sleep(0.1)
        assert [one.number for one in sent] == [first, third, fourth]
        assert sent[0] == TokensWanted(
            first, "unit", "c", "u", "v", "", b"scope", "", b"client", False
        )
        good = TokenResponse("i", "a", "r", 1)
        calls.take(Tokens(first, "", msgspec.msgpack.encode(good)))
        calls.take(Tokens(first, "", msgspec.msgpack.encode(good)))
        calls.take(Tokens(second, "", msgspec.msgpack.encode(good)))
        calls.take(Tokens(third, "", b"junk"))
        assert told == [("a", "", good), ("c", "provider", None)]
        await asyncio.sleep(DEADLINE + 1)
        assert told[2:] == [("d", "provider", None)]
        assert all(
            calls.ask("unit", b"scope", b"client", call, note("x")) for _ in range(NAMESPACE_CALLS)
        )
        assert calls.ask("unit", b"scope", b"client", call, note("x")) == 0
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtually(main(), monkeypatch)


def test_no_owner_and_no_address_takes_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sent: list[TokensWanted | CancelTokens] = []

        async def send(message: TokensWanted | CancelTokens) -> None:
            sent.append(message)

        calls = TokenCalls(send)
        running = asyncio.create_task(calls.run())
        state = start_state("https://a", "/", "https://a/c", 0.0, 60.0, lambda n: bytes(n))
        login = TokenCall(code="c", state=state)
        refresh = TokenCall(refresh_token="r")

        given_up: list[bytes] = []

        def ask(call: TokenCall, namespace: str = "a", client: bytes = b"") -> int:
            def note(word: str, _: TokenResponse | None) -> None:
                assert word == "busy"
                given_up.append(client)

            return calls.ask(f"security/{namespace}/login#oidc", b"", client, call, note)

        strangers = b"", b"one", b"two"
        numbers = [ask(login, client=strangers[at % 3]) for at in range(NAMESPACE_CALLS)]
        assert all(numbers) and not any(ask(login, client=one) for one in strangers)
        assert ask(refresh), "sessions have places of their own"
        assert ask(login, "b", b"one"), "another owner"
        await asyncio.sleep(0.1)
        users = [ask(login, client=b"user %d" % at) for at in range(60)]
        assert all(users), "each other address has a place"
        assert len(given_up) == 60 and max(map(given_up.count, strangers)) <= 21
        await asyncio.sleep(0.1)
        dropped = [one.number for one in sent if isinstance(one, CancelTokens)]
        assert len(dropped) == 60 and set(dropped) <= set(numbers), "the agent hears of it"
        calls.cancel(numbers[0])
        calls.cancel(numbers[0])
        last = ask(login, client=b"more")
        assert last and len(given_up) == 60
        calls.cancel(last)
        await asyncio.sleep(0.1)
        assert sent[-1] == CancelTokens(numbers[0]), "the agent hears what it knows"
        count = 0
        while ask(refresh, f"{count // 200}"):
            count += 1
        assert count + NAMESPACE_CALLS + 1 == CALLS
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtually(main(), monkeypatch)
