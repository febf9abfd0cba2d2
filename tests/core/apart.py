"""Tests that run in a process of their own: those that a fault would take everything down with, and those that move the clock.

In: a coroutine test that is decorated with `apart`. Out: its outcome, from `python -m core.apart MODULE TEST`. With `clock=True`
the child has clock.c preloaded and `shift` moves its time forward, with `calls=True` calls.c, and `addresses_asked` tells how often
the kernel was asked for an address, with `links=True` it has a network namespace with two links (links.py). Must never run anything without a deadline.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from core.links import enter_command, make_links
from core.world import World

HERE = Path(__file__).parent
DEADLINE = 100.0  # seconds
_LIBRARY = "EDGEFAST_TEST_"  # and a name: the library of it

Test = Callable[..., Coroutine[Any, Any, None]]


def apart(
    *, clock: bool = False, calls: bool = False, links: bool = False, **settings: Any
) -> Callable[[Test], Test]:
    """Run this test in a child process, in a World with these settings."""

    def mark(test: Test) -> Test:
        test.settings = settings  # type: ignore[attr-defined]
        test.apart = ["clock"] * clock + ["calls"] * calls  # type: ignore[attr-defined]
        test.links = links  # type: ignore[attr-defined]
        return test

    return mark


def shift(seconds: float) -> None:
    """Move all clocks of this process forward."""
    _library("clock").clock_shift(ctypes.c_long(round(seconds * 1000)))


def addresses_asked() -> int:
    """Tell how often this process has called getsockname and getpeername."""
    return int(_library("calls").addresses_asked())


def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(os.environ[_LIBRARY + name])


@functools.cache
def _build(name: str) -> str:
    folder = tempfile.TemporaryDirectory(prefix=f"edgefast-{name}-")
    atexit.register(folder.cleanup)
    library = f"{folder.name}/{name}.so"
    command = ["gcc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", library, str(HERE / f"{name}.c")]
    subprocess.run([*command, "-ldl"], check=True, timeout=DEADLINE)
    return library


def run_child(test: Test) -> None:
    """Run a decorated test; AssertionError with its output when it fails or dies."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent)])
    for name in test.apart:  # type: ignore[attr-defined]
        library = environment[_LIBRARY + name] = _build(name)
        environment["LD_PRELOAD"] = f"{environment.get('LD_PRELOAD', '')} {library}".strip()
    file = Path(sys.modules[test.__module__].__file__ or "")
    module = ".".join(file.relative_to(HERE.parent).with_suffix("").parts)
    inside = enter_command() if test.links else []  # type: ignore[attr-defined]
    done = subprocess.run(
        [*inside, sys.executable, "-X", "faulthandler", "-m", "core.apart", module, test.__name__],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        cwd=HERE.parents[1],
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"


async def _live(test: Test, world: World) -> None:
    await test(world)
    await world.finish()


def main() -> None:
    """Entry point of the child."""
    module, name = sys.argv[1:]
    test = getattr(importlib.import_module(module), name)
    if test.links:
        make_links()
    world = World(**test.settings)
    try:
        world.loop.run_until_complete(_live(test, world))
    finally:
        world.close()


if __name__ == "__main__":
    main()
