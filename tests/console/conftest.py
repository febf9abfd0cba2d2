"""Fixtures of the console's tests: one browser for each process of tests; a page is a context of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.browser import Browser
from edgefast.console import console


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer may take its time; a test about those that take too long says how long."""
    monkeypatch.setattr(console, "_DEADLINE", 100.0)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium."""
    with Browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one
