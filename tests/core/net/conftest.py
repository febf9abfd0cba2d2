"""The stage of the socket layer's tests (stage.py), compiled when a test wants it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def stage() -> Iterator[Any]:
    """See stage.Stage."""
    from core.net.stage import set_up

    with set_up() as made:
        yield made
