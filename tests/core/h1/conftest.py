"""A world of pipes for the tests of the codecs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.conftest import check
from core.pipes import PipeWorld


@pytest.fixture
def pipes() -> Iterator[PipeWorld]:
    """A world of this test's own."""
    yield from check(PipeWorld())  # type: ignore[misc]
