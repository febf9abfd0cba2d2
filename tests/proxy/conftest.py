"""Fixtures of the proxy tests."""

from __future__ import annotations

import pytest

from proxy import living
from proxy.command import start

__all__ = ["start"]


@pytest.fixture(autouse=True)
def _children_before() -> None:
    """Remember the child processes that are not this test's."""
    living.BEFORE.clear()
    living.BEFORE.update(living.all_children())
