"""Fixtures of the counter stores' tests: one plain redis-server per test process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rate_limit.servers import RedisServer, running


@pytest.fixture(scope="session")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that all tests of this process share."""
    with running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(plain_server: RedisServer) -> RedisServer:
    """The shared server, empty and with its statistics at zero."""
    with contextlib.closing(plain_server.client()) as client:
        client.flushall()
        client.script_flush()
        client.config_resetstat()
    return plain_server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may treat as it likes."""
    with running(tmp_path) as server:
        yield server
