"""Fixtures of the rate limits' wire tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rate_limit.servers import RedisServer, running

for module in ("account", "pair", "proxy"):
    pytest.register_assert_rewrite(f"wire.limits.{module}")

from wire.limits.flood import running_origin  # noqa: E402
from wire.limits.proxy import PASSWORD  # noqa: E402


@pytest.fixture(scope="module")
def fast_origin() -> Iterator[int]:
    """The port of an origin that keeps up with any flood."""
    with running_origin() as port:
        yield port


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of the module's own: tests stop it, and set its clock."""
    folder = tmp_path_factory.mktemp("redis")
    with running(folder, "--requirepass", PASSWORD, password=PASSWORD) as server:
        yield server
