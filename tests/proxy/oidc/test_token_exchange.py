"""Requests for tokens of all workers: which share one, how many are sent at a time, and what becomes of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from edgefast import ir
from edgefast.auth.oidc.cookie_names import client_scope
from edgefast.auth.oidc.token_response import TokenError
from edgefast.ir.credentials import RemoteKeys
from edgefast.proxy.control.messages import Tokens, TokensWanted
from edgefast.proxy.oidc import token_exchange, token_request
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

    def ask(self, number: int, unit: str = "a", owner: str = "worker", **said: Any) -> None:
        scope = client_scope(_login(unit))
        state = "" if "refresh_token" in said else f"state of {number}"
        wanted = TokensWanted(number, unit, **{"scope": scope, "state": state, **said})
        self.exchange.ask(owner, wanted, self.answers.append)

    def word(self, number: int) -> str | None:
        """Return the word of an answer; None: it did not come yet."""
        (word, *more) = [one.word for one in self.answers if one.number == number] or [None]
        assert not more
        return word


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


def test_a_login_has_one_exchange(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.ask(1, code="c")
        world.ask(2, code="c")
        await asyncio.sleep(2)
        assert world.calls == ["c", "c"], "two logins"
        for number in range(3, 9):
            world.ask(number, code="junk", state="state of 1")
        assert {world.word(number) for number in range(3, 9)} == {"rejected"}
        world.ask(10, code="c", state="state of 1")
        assert world.answers[-1] == Tokens(10, "", b"tokens"), "its page was loaded again"
        world.failure = TokenError("no answer")
        world.ask(11, code="a", state="other")
        await asyncio.sleep(2)
        world.ask(12, code="b", state="other")
        assert (world.word(11), world.word(12)) == ("provider", "rejected")
        assert len(world.calls) == 3

    run(main)


def test_a_flood_of_logins_stops_neither_refreshes_nor_other_addresses(
    run: Callable[..., None],
) -> None:
    async def main(world: World) -> None:
        world.takes = 5.0
        for number in range(2 * (AT_ONCE + WAITING)):
            world.ask(number, code=f"{number}", client=b"stranger")
            if number == AT_ONCE:
                await asyncio.sleep(0.1)
        assert len(world.answers) == AT_ONCE + WAITING
        assert {one.word for one in world.answers} == {"busy"}
        world.ask(2000, refresh_token="r", client=b"stranger")
        await asyncio.sleep(0.1)
        assert "r" in world.calls, "at once"
        for number in range(2001, 2011):
            world.ask(number, code=f"{number}", client=b"user")
        await asyncio.sleep(5.2)
        assert "2001" in world.calls and world.calls.index("2001") <= AT_ONCE + 3, "in turn"
        assert all(world.word(number) != "busy" for number in range(2000, 2011))

    run(main)


def test_what_no_request_waits_for_is_not_sent(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.takes = 5.0
        for number in range(AT_ONCE + WAITING):
            world.ask(number, code=f"{number}")
        await asyncio.sleep(0.1)
        for number in range(AT_ONCE + 1, AT_ONCE + WAITING):
            world.exchange.cancel("another worker", number)
        world.ask(998, code="too many")
        for number in range(AT_ONCE + 1, AT_ONCE + WAITING):
            world.exchange.cancel("worker", number)
        world.exchange.cancel("worker", 0)
        world.ask(999, code="last")
        await asyncio.sleep(9)
        assert world.word(998) == "busy" and world.word(0) is None
        assert sorted(world.calls[AT_ONCE:]) == [f"{AT_ONCE}", "last"]

    run(main)


def test_a_client_that_the_table_no_longer_has_gets_nothing(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.units["a"] = _login("b")
        world.ask(1, refresh_token="r")
        world.ask(2, code="c")
        await asyncio.sleep(1)
        assert world.calls == [] and {one.word for one in world.answers} == {"busy"}

    run(main)


def test_no_answer_to_a_refresh_is_dropped_early(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_exchange, "KEPT_BYTES", 3000 * 1024)

    async def main(world: World) -> None:
        world.takes = 0.001
        for number in range(5000):
            world.ask(number, refresh_token=f"r{number}")
            if number % 100 == 0:
                await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        done = [one.number for one in world.answers if not one.word]
        assert 2900 <= len(done) < 3300 and len(done) == len(world.calls)
        for number in done:
            world.ask(10_000 + number, refresh_token=f"r{number}")
        assert len(world.calls) == len(done), "each has its answer"
        world.ask(20_000, code="c")
        await asyncio.sleep(KEPT)
        world.ask(20_001, refresh_token="again")
        await asyncio.sleep(1)
        assert world.word(20_000) == world.word(20_001) == ""

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
        world.exchange.ask("worker", TokensWanted(5, "gone", "c"), world.answers.append)
        await asyncio.sleep(2)
        said = {one.number: one.word for one in world.answers}
        assert said == {1: "provider", 2: "rejected", 3: "rejected", 4: "provider", 5: "busy"}
        assert world.calls == ["r", "r", "c"], "an outage is tried again, a rejection is not"

    run(main)


def test_results_are_counted_for_policies_that_are_there(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        a, b = (f"security/ns/{one}#oidc" for one in "ab")
        world.units.update({a: _login("a"), b: _login("b")})
        scopes = {a: client_scope(_login("a")), b: client_scope(_login("b"))}
        for at in range(2 * (AT_ONCE + WAITING)):
            world.ask(at, a, scope=scopes[a], code="c", client=b"x")
        world.ask(1000, b, scope=scopes[b], refresh_token="r")
        world.ask(1001, b, scope=scopes[b], refresh_token="r")
        world.ask(1002, b, scope=scopes[b], refresh_token="r", revokes=True)
        await asyncio.sleep(0.5)
        assert world.exchange.count_results() == {("ns/a", "login", "busy"): AT_ONCE + WAITING}
        await asyncio.sleep(DEADLINE + 1)
        counted = world.exchange.count_results()
        assert sum(count for key, count in counted.items() if key[0] == "ns/a") == 2 * (
            AT_ONCE + WAITING
        )
        assert {key: count for key, count in counted.items() if key[0] == "ns/b"} == {
            ("ns/b", "refresh", "ok"): 1,
            ("ns/b", "logout", "ok"): 1,
        }
        assert world.word(1002) == ""
        del world.units[a]
        assert {policy for policy, _, _ in world.exchange.count_results()} == {"ns/b"}

    run(main)
