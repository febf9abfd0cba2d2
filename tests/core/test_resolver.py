"""Resolver: answers come soon and after every change; what was good stays until something better comes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from core.world import World
from edgefast.core import resolver as module
from edgefast.core.resolver import Resolver

Answer = list[str] | Exception


class Names:
    """A getaddrinfo that a test is in charge of."""

    def __init__(self, world: World) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.held: asyncio.Event | None = None
        self.most = 0
        self._now = 0
        self._real = world.loop.getaddrinfo
        world.loop.getaddrinfo = self._ask  # type: ignore[method-assign,assignment]

    async def _ask(self, host: str, port: object, **options: Any) -> Any:
        if host not in self.answers:  # the tests' own connections
            return await self._real(host, port, **options)  # type: ignore[arg-type]
        self.asked.append(host)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            if self.held is not None:
                await self.held.wait()
            else:
                await asyncio.sleep(0)
        finally:
            self._now -= 1
        answer = self.answers[host]
        if isinstance(answer, Exception):
            raise answer
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in answer]


class Seen:
    """A watcher."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, hostname: str, addresses: tuple[str, ...]) -> None:
        self.calls.append(addresses)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.005)
    monkeypatch.setattr(module, "RETRY", 0.005)
    monkeypatch.setattr(module, "DEADLINE", 0.05)


@pytest.fixture
def names(world: World, quick: None) -> Names:
    return Names(world)


@pytest.fixture
def resolver(world: World, names: Names) -> Iterator[Resolver]:
    made = Resolver(world.loop)
    yield made
    made.close()


async def test_answers_and_changes(world: World, names: Names, resolver: Resolver) -> None:
    names.answers["a.test"] = ["10.0.0.1", "10.0.0.2", "10.0.0.1"]
    seen = Seen()
    resolver.watch("a.test", seen)
    await world.until(lambda: len(names.asked) >= 4)
    assert seen.calls == [("10.0.0.1", "10.0.0.2")]
    names.answers["a.test"] = ["10.0.0.3"]
    await world.until(lambda: len(seen.calls) == 2)
    assert seen.calls[-1] == ("10.0.0.3",)


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "no such name"), TimeoutError(), OSError("x"), UnicodeError("x")]
)
async def test_a_failure_keeps_the_last_answer(
    world: World, names: Names, resolver: Resolver, error: Exception
) -> None:
    names.answers["a.test"] = ["10.0.0.1"]
    seen = Seen()
    resolver.watch("a.test", seen)
    await world.until(lambda: seen.calls)
    names.answers["a.test"] = error
    asked = len(names.asked)
    await world.until(lambda: len(names.asked) > asked + 3)
    assert seen.calls == [("10.0.0.1",)]
    names.answers["a.test"] = ["10.0.0.2"]
    await world.until(lambda: len(seen.calls) == 2)


async def test_a_name_that_never_resolved_is_empty(
    world: World, names: Names, resolver: Resolver
) -> None:
    names.answers["a.test"] = OSError("x")
    seen = Seen()
    resolver.watch("a.test", seen)
    await world.until(lambda: len(names.asked) > 3)
    assert seen.calls == [()]
    names.answers["a.test"] = ["10.0.0.1"]
    await world.until(lambda: seen.calls == [(), ("10.0.0.1",)])


async def test_a_name_whose_answer_is_empty(world: World, names: Names, resolver: Resolver) -> None:
    names.answers["a.test"] = ["10.0.0.1"]
    seen = Seen()
    resolver.watch("a.test", seen)
    await world.until(lambda: seen.calls)
    names.answers["a.test"] = []
    asked = len(names.asked)
    await world.until(lambda: len(names.asked) > asked + 3)
    assert seen.calls in ([("10.0.0.1",)], [("10.0.0.1",), ()])


async def test_a_look_up_that_hangs_is_given_up(
    world: World, names: Names, resolver: Resolver
) -> None:
    names.held = asyncio.Event()
    names.answers["a.test"] = ["10.0.0.1"]
    seen = Seen()
    resolver.watch("a.test", seen)
    await world.until(lambda: len(names.asked) >= 3, "it is asked again")
    assert seen.calls == [()]
    assert names.most == 1  # one at a time
    names.held.set()
    await world.until(lambda: seen.calls == [(), ("10.0.0.1",)])


async def test_two_watchers_of_one_name_share_its_look_ups(
    world: World, names: Names, resolver: Resolver
) -> None:
    names.answers["a.test"] = ["10.0.0.1"]
    one, two = Seen(), Seen()
    resolver.watch("a.test", one)
    await world.until(lambda: one.calls)
    resolver.watch("a.test", two)
    await world.until(lambda: two.calls)
    assert two.calls == [("10.0.0.1",)]
    assert set(one.calls) == {("10.0.0.1",)}
    names.answers["a.test"] = ["10.0.0.2"]
    await world.until(lambda: one.calls[-1] == two.calls[-1] == ("10.0.0.2",))
    assert names.most == 1


async def test_a_new_watcher_does_not_take_good_answers_away(
    world: World, names: Names, resolver: Resolver
) -> None:
    """The look-up that a second watcher causes fails: the first one's answer was good, and is good enough for both."""
    names.answers["a.test"] = ["10.0.0.1"]
    one, two = Seen(), Seen()
    resolver.watch("a.test", one)
    await world.until(lambda: one.calls)
    names.answers["a.test"] = OSError("the name server is away")
    resolver.watch("a.test", two)
    await world.until(lambda: two.calls)
    assert () not in one.calls
    assert two.calls[0] == ("10.0.0.1",)


async def test_forgetting_ends_the_look_ups(world: World, names: Names, resolver: Resolver) -> None:
    names.answers["a.test"] = ["10.0.0.1"]
    one, two = Seen(), Seen()
    resolver.watch("a.test", one)
    resolver.watch("a.test", two)
    await world.until(lambda: one.calls and two.calls)
    resolver.forget("a.test", one)
    names.answers["a.test"] = ["10.0.0.2"]
    await world.until(lambda: two.calls[-1] == ("10.0.0.2",))
    assert one.calls[-1] == ("10.0.0.1",)
    resolver.forget("a.test", two)
    resolver.forget("a.test", two)
    resolver.forget("never.test", two)
    await world.turns()
    asked = len(names.asked)
    begin = world.loop.time()
    await world.until(lambda: world.loop.time() > begin + 0.03)
    assert len(names.asked) == asked


async def test_close_ends_everything(world: World, names: Names, resolver: Resolver) -> None:
    names.held = asyncio.Event()
    seen = Seen()
    for number in range(10):
        names.answers[f"{number}.test"] = ["10.0.0.1"]
        resolver.watch(f"{number}.test", seen)
    await world.until(lambda: len(names.asked) == 10)
    resolver.close()
    await world.turns()
    assert names.most == 10
    this = asyncio.current_task()
    assert asyncio.all_tasks() == {this}
    assert seen.calls == []
