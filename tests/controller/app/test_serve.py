"""serve: a signal ends the process whatever it is about to do; a configuration that needs it gives a new start."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from controller import serve
from controller.config import ConfigFile
from controller.options import Options

pytestmark = pytest.mark.pure


class Server:
    """An API server that nobody talks to."""

    @classmethod
    async def open(cls, kubeconfig: Path | None, context: str | None) -> Server:
        return cls()

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        pass


def run(monkeypatch: pytest.MonkeyPatch, *lives: Callable[[Life], bool]) -> list[Life]:
    """Serve with Apps that do what `lives` say, one after the other; return those that there were."""
    made: list[Life] = []
    left = list(lives)

    def begin(options: Options, kube: Server, file: ConfigFile) -> Life:
        made.append(Life(left.pop(0)))
        return made[-1]

    monkeypatch.setattr(serve, "Kube", Server)
    monkeypatch.setattr(serve, "App", begin)
    monkeypatch.setattr(serve, "open_servers", lambda app: NoServers())
    assert asyncio.run(serve._serve(Options(), "info")) == 0
    return made


class NoServers:
    """Nobody looks."""

    async def run(self) -> None:
        pass


class Life:
    """An App without rooms."""

    def __init__(self, live: Callable[[Life], bool]) -> None:
        self._live = live
        self.stopped = asyncio.Event()

    def stop(self) -> None:
        self.stopped.set()

    async def run(self, servers: Coroutine[Any, Any, None]) -> bool:
        await servers
        again = self._live(self)
        if not again:
            await self.stopped.wait()
        # A turn of the loop, in which signals arrive.
        await asyncio.sleep(0.01)
        return again


def signalled(again: bool) -> Callable[[Life], bool]:
    """An App that a signal reaches, and which would begin anew or not."""

    def live(_: Life) -> bool:
        signal.raise_signal(signal.SIGTERM)
        return again

    return live


def test_a_signal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    (life,) = run(monkeypatch, signalled(again=False))
    assert life.stopped.is_set()


def test_a_new_start_is_made_and_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = run(monkeypatch, lambda _: True, signalled(again=False))
    assert not first.stopped.is_set() and second.stopped.is_set()


def test_a_signal_on_the_way_to_a_new_start_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run(monkeypatch, signalled(again=True), lambda _: True)) == 1
