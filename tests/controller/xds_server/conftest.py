"""A push server on loopback, for the tests that ask for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.xds_server.loopback import Loopback


@pytest.fixture
def loopback(tmp_path: Path) -> Loopback:
    """Return a server with no fleet; the test's coroutine enters it."""
    return Loopback(tmp_path / "keys")
