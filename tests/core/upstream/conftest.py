"""Two workers that share how their backends fare."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.conftest import check
from core.upstream.workers import Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Two engines on one loop."""
    yield from check(Workers())  # type: ignore[misc]
