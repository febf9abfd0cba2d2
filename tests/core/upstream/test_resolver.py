"""Resolver: answers come soon and after every change; what was good stays until something better comes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from core.world import World
from edgefast.core.upstream import resolver as module
from edgefast.core.upstream.resolver import Resolver

Answer = list[str] | Exception


class Names:
    """The system's resolver, as a test wants it; it is asked in threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.hung: dict[str, threading.Event] = {}  # look-ups of these wait
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        monkeypatch.setattr(module, "look_up", self._ask)

    def hang(self, hostname: str) -> threading.Event:
        """Let look-ups of a name hang until the event is set."""
        return self.hung.setdefault(hostname, threading.Event())

    def release(self) -> None:
        """Let all go on."""
        for event in self.hung.values():
            event.set()

    def _ask(self, hostname: str) -> tuple[str, ...]:
        with self._lock:
            self.asked.append(hostname)
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            if hostname in self.hung:
                self.hung[hostname].wait(60)
        finally:
            with self._lock:
                self._now -= 1
        answer = self.answers[hostname]
        if isinstance(answer, Exception):
            raise answer
        return tuple(dict.fromkeys(answer))


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


@pytest.fixture
def overdue_soon(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what hangs; a look-up of the others is a thread's, which may take its time to run."""
    monkeypatch.setattr(module, "DEADLINE", 0.5)


@pytest.fixture
def names(quick: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    made = Names(monkeypatch)
    yield made
    made.release()


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


@pytest.mark.usefixtures("overdue_soon")
async def test_a_look_up_that_hangs_is_said_and_not_begun_again(
    world: World, names: Names, resolver: Resolver
) -> None:
    hung = names.hang("a.test")
    names.answers["a.test"] = ["10.0.0.1"]
    seen = Seen()
    resolver.watch("a.test", seen)
    await world.until(lambda: seen.calls == [()], "it is overdue")
    resolver.forget("a.test", seen)
    resolver.watch("a.test", seen)  # and so it is for the next who asks
    await world.until(lambda: seen.calls == [(), ()], "it is overdue")
    assert names.asked == ["a.test"]
    hung.set()
    await world.until(lambda: seen.calls == [(), (), ("10.0.0.1",)])
    assert names.most == 1  # one at a time


@pytest.mark.usefixtures("overdue_soon")
async def test_names_that_hang_do_not_keep_others_waiting(
    world: World, names: Names, resolver: Resolver
) -> None:
    """More dead names than places, all asked before: the good one is there, and nothing piles up."""
    dead = [f"dead{number}.test" for number in range(module.PLACES + module.OVERDUE // 2)]
    seen = {name: Seen() for name in (*dead, "good.test", "other.test")}
    for name in dead:
        names.hang(name)
        names.answers[name] = OSError("no answer")
        resolver.watch(name, seen[name])
    names.answers["good.test"] = names.answers["other.test"] = ["10.0.0.1"]
    resolver.watch("good.test", seen["good.test"])
    await world.until(lambda: seen["good.test"].calls, "the good name")
    assert seen["good.test"].calls == [
        ("10.0.0.1",)
    ]  # never (): that would be our own queue's doing
    await world.until(lambda: all(seen[name].calls for name in dead), "the dead ones are told")
    # They come back all together, and hang again: few of them may, now that they are known.
    asked = len(names.asked)
    before, names.hung = names.hung, {name: threading.Event() for name in dead}
    for event in before.values():
        event.set()
    await world.until(lambda: len(set(names.asked[asked:]).intersection(dead)) == module.SUSPECTS)
    resolver.watch("other.test", seen["other.test"])
    await world.until(lambda: seen["other.test"].calls == [("10.0.0.1",)], "the other one")
    await world.until(lambda: names.asked.count("good.test") > 3, "it is resolved again and again")
    assert sum(name in dead for name in names.asked[asked:]) == module.SUSPECTS
    assert names.most <= module.PLACES + module.SUSPECTS + module.OVERDUE


async def test_failures_are_tried_again_less_and_less_often(
    world: World, names: Names, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds >= 1.0:
            slept.append(seconds)
        await real(0 if seconds >= 1.0 else seconds)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    monkeypatch.setattr(module, "RETRY", 1.0)
    monkeypatch.setattr(module, "INTERVAL", 10.0)
    names.answers["a.test"] = OSError("no such name")
    resolver.watch("a.test", Seen())
    await world.until(lambda: len(slept) >= 6)
    names.answers["a.test"] = ["10.0.0.1"]
    await world.until(lambda: 10.0 in slept[6:])
    assert slept[:6] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


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
    seen = Seen()
    for number in range(10):
        names.hang(f"{number}.test")
        names.answers[f"{number}.test"] = ["10.0.0.1"]
        resolver.watch(f"{number}.test", seen)
    await world.until(lambda: len(names.asked) == 10)
    resolver.close()
    await world.turns()
    assert names.most == 10
    this = asyncio.current_task()
    assert asyncio.all_tasks() == {this}
    assert seen.calls == []


async def test_names_without_an_address_are_known(
    world: World, names: Names, resolver: Resolver
) -> None:
    names.answers.update({"a.test": ["10.0.0.1"], "b.test": OSError("no"), "c.test": OSError("no")})
    seen = Seen()
    for name in names.answers:
        resolver.watch(name, seen)
    await world.until(lambda: len(resolver.unresolved(9)) == 2)
    assert set(resolver.unresolved(9)) == {"b.test", "c.test"} and len(resolver.unresolved(1)) == 1
    names.answers["b.test"] = ["10.0.0.2"]
    await world.until(lambda: resolver.unresolved(9) == ("c.test",))
    names.answers["a.test"] = names.answers["b.test"] = OSError("no")  # what was good stays
    asked = len(names.asked)
    await world.until(lambda: len(names.asked) >= asked + 9)
    assert resolver.unresolved(9) == ("c.test",)
    resolver.forget("c.test", seen)
    assert resolver.unresolved(9) == ()
