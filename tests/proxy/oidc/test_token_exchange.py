"""Requests for tokens of all workers: which share one, how many are sent at a time, and what becomes of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from edgefast import ir
from edgefast.auth.oidc.token_response import TokenError
from edgefast.ir.credentials import RemoteKeys
from edgefast.proxy.control.messages import Tokens, TokensWanted
from edgefast.proxy.oidc import token_request
from edgefast.proxy.oidc.token_exchange import AT_ONCE, DEADLINE, KEPT, WAITING, TokenExchange
from tests.proxy.jwks.virtual import run_virtually


class World:
    """An exchange, and a provider whose answers are the test's."""

    def __init__(self) -> None:
        self.units = {"a": _login("a"), "b": _login("b")}
        self.exchange = TokenExchange(self.units.get, lambda _: None, lambda: None)  # type: ignore[arg-type,return-value]
        self.calls: list[str] = []
        self.now = self.most = 0
        self.failure: Exception | None = None
        self.takes = 1.0
        self.answers: list[Tokens] = []

    async def request(self, spec: Any, wanted: TokensWanted, *_: Any) -> bytes:
        self.calls.append(wanted.refresh_token or wanted.code)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.takes)
            if self.failure is not None:
                raise self.failure
            return b"tokens"
        finally:
            self.now -= 1

    def ask(self, number: int, unit: str = "a", **said: str) -> None:
        self.exchange.ask(TokensWanted(number, unit, **said), self.answers.append)


def _login(client: str) -> ir.Oidc:
    issuer = f"https://{client}.example.com"
    return ir.Oidc(remote=RemoteKeys(issuer, issuer=issuer), client_id="c", client_secret=b"s")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def go(main: Callable[[World], Coroutine[Any, Any, None]]) -> None:
        async def within() -> None:
            world = World()
            monkeypatch.setattr(token_request, "request_tokens", world.request)
            running = asyncio.create_task(world.exchange.run())
            try:
                await main(world)
                assert not running.done(), running.exception()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        run_virtually(within(), monkeypatch)

    return go


def test_requests_with_one_refresh_token_share_an_answer_for_a_while(
    run: Callable[..., None],
) -> None:
    async def main(world: World) -> None:
        for number in range(1, 9):
            world.ask(number, refresh_token="r")
        world.ask(9, refresh_token="other")
        world.ask(10, "b", refresh_token="r")
        await asyncio.sleep(2)
        assert sorted(world.calls) == ["other", "r", "r"], "one for each client and token"
        assert {one.number for one in world.answers} == set(range(1, 11))
        world.ask(11, refresh_token="r")
        assert world.answers[-1] == Tokens(11, "", b"tokens"), "a late request"
        await asyncio.sleep(KEPT)
        world.ask(12, refresh_token="r")
        await asyncio.sleep(2)
        assert world.calls.count("r") == 3

    run(main)


def test_codes_are_never_shared(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.ask(1, code="c")
        world.ask(2, code="c")
        await asyncio.sleep(2)
        assert world.calls == ["c", "c"]

    run(main)


def test_a_slow_provider_is_bounded_and_delays_no_other_one(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.takes = 100.0
        for number in range(AT_ONCE + WAITING):
            world.ask(number, code=f"{number}")
        await asyncio.sleep(0.1)
        assert world.most == AT_ONCE
        world.ask(999, code="more")
        assert world.answers == [Tokens(999, "busy")]
        world.takes = 0.1
        world.ask(1000, "b", code="elsewhere")
        await asyncio.sleep(0.5)
        assert world.answers[-1] == Tokens(1000, "", b"tokens")
        await asyncio.sleep(DEADLINE)
        assert len(world.answers) == AT_ONCE + WAITING + 2, "each within its time"
        world.ask(1001, code="again")
        await asyncio.sleep(1)
        assert world.answers[-1] == Tokens(1001, "", b"tokens"), "there is room again"

    run(main)


def test_failures_and_what_is_kept_of_them(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.failure = TokenError("no answer")
        world.ask(1, refresh_token="r")
        await asyncio.sleep(2)
        world.failure = TokenError("rejected", rejected=True)
        world.ask(2, refresh_token="r")
        await asyncio.sleep(2)
        world.failure = None
        world.ask(3, refresh_token="r")
        world.failure = RuntimeError("a mistake of ours")
        world.ask(4, code="c")
        world.ask(5, "gone", code="c")
        await asyncio.sleep(2)
        said = {one.number: one.word for one in world.answers}
        assert said == {1: "provider", 2: "rejected", 3: "rejected", 4: "provider", 5: "provider"}
        assert world.calls == ["r", "r", "c"], "an outage is tried again, a rejection is not"

    run(main)
