"""The event loops on which a test of connections runs."""

from __future__ import annotations

from typing import Any

import pytest
import uvloop


@pytest.fixture(params=[None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Any:
    """The loops of asyncio and of a controller: their transports differ."""
    return request.param
