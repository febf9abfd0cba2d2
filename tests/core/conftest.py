"""Coroutine tests and their world.

A test that is a coroutine runs on the loop of its `world` fixture (or of a fixture that is built on it) within a deadline;
afterwards the world is checked for anything left behind.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Iterator

import pytest

from core.apart import run_child
from core.pipes import PipeWorld
from core.world import World

DEADLINE = 100.0  # seconds for one test: only a hang comes near it


async def within_deadline(work: Coroutine[None, None, None]) -> None:
    """Let no test hang."""
    async with asyncio.timeout(DEADLINE):
        await work


@pytest.fixture
def world() -> Iterator[World]:
    """A world of this test's own."""
    made = World()
    yield from check(made)


@pytest.fixture
def pipes() -> Iterator[PipeWorld]:
    """A world of pipes, for the codecs byte by byte."""
    yield from check(PipeWorld())  # type: ignore[misc]


def check(made: World) -> Iterator[World]:
    """Lend a world to a test, check it afterwards, close it whatever happens."""
    try:
        yield made
        made.loop.run_until_complete(within_deadline(made.finish()))
    finally:
        made.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests, here or in a child."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    if hasattr(pyfuncitem.obj, "apart"):
        run_child(pyfuncitem.obj)
        return True
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    (made,) = [one for one in pyfuncitem.funcargs.values() if isinstance(one, World)]
    made.loop.run_until_complete(within_deadline(pyfuncitem.obj(**arguments)))
    return True
