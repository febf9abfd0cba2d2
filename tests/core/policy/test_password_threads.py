"""Threads that try passwords and cannot be had: the request is told so, its place is free again, and the next one tries anew."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from core.policy.authenticators import apr1, slow
from edgefast.core.engine import Hasher as Native
from edgefast.core.policy.passwords import QUEUE, SHARE, Hasher, Job, Passwords

pytestmark = pytest.mark.pure

APR1 = apr1("opensesame").encode()
BCRYPT = slow("opensesame").encode()


class Asker:
    """Whoever waits for one password."""

    def __init__(self) -> None:
        self.user = asyncio.get_running_loop().create_future()

    def complete_auth(self, job: Job, user: bytes) -> None:
        self.user.set_result(user)


def ask(passwords: Passwords, kept: bytes, client: bytes = b"client") -> Asker | None:
    asker = Asker()
    job = passwords.submit(kept, b"opensesame", client, asker, b"alice", b"proof")
    return asker if job is not None else None


def refuse_first(count: int) -> Callable[[], Hasher]:
    """Threads of which the first so many cannot be had."""
    left = [OSError(11, "Resource temporarily unavailable")] * count

    def make() -> Hasher:
        if left:
            raise left.pop()
        return Native()

    return make


def test_a_thread_that_cannot_be_had_takes_no_place(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        passwords = Passwords(asyncio.get_running_loop(), make_hasher=refuse_first(QUEUE + SHARE))
        for _ in range(QUEUE + SHARE):
            assert ask(passwords, APR1) is None
            assert passwords.count == 0
        (told,) = caplog.records  # once, however many came
        assert "Resource temporarily unavailable" in told.getMessage()
        asked = [ask(passwords, APR1) for _ in range(SHARE)]
        assert [await one.user for one in asked if one is not None] == [b"alice"] * SHARE
        assert passwords.count == 0
        passwords.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())


class Full:
    """A thread that has no memory for what it is asked, the second time."""

    def __init__(self) -> None:
        self._native = Native()
        self._asked = 0

    def fileno(self) -> int:
        return self._native.fileno()

    def submit(self, kept: bytes, password: bytes) -> None:
        self._asked += 1
        if self._asked == 2:
            raise RuntimeError("no memory")
        self._native.submit(kept, password)

    def take(self) -> list[bool]:
        return self._native.take()


def test_answers_stay_with_their_questions_where_one_was_not_taken() -> None:
    async def run() -> None:
        passwords = Passwords(asyncio.get_running_loop(), make_hasher=Full)
        first, lost, third = (ask(passwords, APR1) for _ in range(3))
        assert first is not None and third is not None
        assert lost is None and passwords.count == 2
        assert [await first.user, await third.user] == [b"alice", b"alice"]
        assert passwords.count == 0
        passwords.close()

    asyncio.run(run())


def test_pythons_thread_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        passwords = Passwords(asyncio.get_running_loop())
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            assert ask(passwords, BCRYPT) is None
        assert passwords.count == 0
        asked = ask(passwords, BCRYPT)
        assert asked is not None and await asked.user == b"alice"
        passwords.close()

    asyncio.run(run())


def test_each_thread_that_cannot_be_had_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Who has the other one makes nobody repeat it."""

    async def run() -> None:
        passwords = Passwords(asyncio.get_running_loop(), make_hasher=refuse_first(9))
        for _ in range(3):
            assert ask(passwords, APR1) is None
            asked = ask(passwords, BCRYPT)
            assert asked is not None and await asked.user == b"alice"
        passwords.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert len(caplog.records) == 1
