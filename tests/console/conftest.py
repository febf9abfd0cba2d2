"""Fixtures of the console's tests: one browser for each process of tests; a page is a context of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium."""
    with Browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one
