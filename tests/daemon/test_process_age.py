"""The age of a process counts its interpreter and imports, not only what came after them."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from edgefast.daemon import process as module

pytestmark = pytest.mark.pure

TICK = 0.02


def test_the_age_of_a_process() -> None:
    script = "import time; time.sleep(0.1); from edgefast.daemon.process import process_age; print(process_age())"
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    elapsed = time.monotonic() - began
    assert 0.1 - TICK <= float(done.stdout) <= elapsed + TICK


def test_without_proc_it_is_the_age_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOADED", time.monotonic() - 5.0)
    monkeypatch.setattr(module.Path, "read_bytes", lambda _: b"")
    assert module.process_age() >= 5.0
