"""Fixtures of the rate limits' wire tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wire.limits.flood import running_origin

for module in ("account", "proxy", "failure"):
    pytest.register_assert_rewrite(f"wire.limits.{module}")


@pytest.fixture(scope="module")
def fast_origin() -> Iterator[int]:
    """The port of an origin that keeps up with any flood."""
    with running_origin() as port:
        yield port
