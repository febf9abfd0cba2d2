"""Libraries of policies: who needs them, that nobody waits for them but the table, and that the swap comes after them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import msgspec
import pytest

from edgefast import ir
from edgefast.ir.credentials import BasicAuth, Jwt, JwtProvider
from edgefast.proxy.control.messages import Change
from edgefast.proxy.worker import table
from edgefast.proxy.worker.libraries import load_libraries
from edgefast.proxy.worker.table import WorkerTable

pytestmark = pytest.mark.pure

MODULES = ["edgefast.core.policy.token_requirements", "edgefast.core.policy.token_verification"]
TOKENS = msgspec.msgpack.encode(ir.PolicyUnit("t", jwt=Jwt((JwtProvider("p"),))))
OTHERS = msgspec.msgpack.encode(ir.PolicyUnit("o", basic=BasicAuth()))
CHECK = """
import sys
import edgefast.proxy.worker.worker
import edgefast.core.engine
print([name for name in ("cryptography", "edgefast.core.policy.token_requirements") if name in sys.modules])
"""

#: A policy of tokens in an engine whose process has loaded what the table says.
REST = """
import asyncio, sys
from importlib import import_module
import edgefast.proxy.worker.worker
from edgefast.ir.credentials import CredentialExtractors, Jwt, JwtProvider, RemoteKeys
from edgefast.proxy.worker.libraries import _NEEDED
from edgefast.proxy.worker.token_keys import TokenKeys
for names in _NEEDED.values():
    for name in names:
        import_module(name)
before = set(sys.modules)

async def main():
    from edgefast.core.policy.token_requirements import make_verifiers
    make_verifiers(TokenKeys(print).token_verifier(), Jwt((JwtProvider("p", remote=RemoteKeys("https://a.example")),)))

asyncio.run(main())
print(set(sys.modules) - before)
"""


@pytest.fixture
def nobody_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_loop_goes_on_meanwhile(nobody_has_them: None) -> None:
    began, may_end = threading.Event(), threading.Event()
    loaded: list[tuple[str, bool]] = []

    def load(name: str) -> None:
        began.set()
        assert may_end.wait(30)
        loaded.append((name, threading.current_thread() is threading.main_thread()))

    async def run() -> None:
        task = asyncio.create_task(load_libraries([OTHERS, TOKENS], load))
        assert await asyncio.to_thread(began.wait, 30)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done() and loaded == []
        may_end.set()
        await task

    asyncio.run(run())
    assert loaded == [(name, False) for name in MODULES]


@pytest.mark.parametrize("policies", [[], [OTHERS]])
def test_who_has_no_tokens_loads_nothing(nobody_has_them: None, policies: list[bytes]) -> None:
    loaded: list[str] = []
    asyncio.run(load_libraries(policies, loaded.append))
    assert loaded == []


def test_once(nobody_has_them: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, sys)
    loaded: list[str] = []
    asyncio.run(load_libraries([TOKENS], loaded.append))
    assert loaded == []


def test_one_that_is_not_there_fails_no_commit(
    nobody_has_them: None, caplog: pytest.LogCaptureFixture
) -> None:
    def load(name: str) -> None:
        raise ImportError("not there")

    asyncio.run(load_libraries([TOKENS], load))
    assert "not there" in caplog.text


def test_they_are_there_before_the_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    async def load(policies: object) -> None:
        assert list(policies) == [TOKENS]  # type: ignore[call-overload]
        await asyncio.sleep(0)
        order.append("loaded")

    class Engine:
        def apply(self, changes: object, version: str) -> list[tuple[str, str, str]]:
            order.append("swapped")
            return []

    monkeypatch.setattr(table, "load_libraries", load)
    one = WorkerTable(memoryview(TOKENS))
    changes = [Change("put", "policy", "t", 0, len(TOKENS)), Change("del", "policy", "x", 0, 0)]
    asyncio.run(one.apply(Engine(), changes, "v"))
    assert order == ["loaded", "swapped"]


def test_a_worker_begins_without_them() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_is_left_to_import() -> None:
    done = subprocess.run([sys.executable, "-c", REST], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
