"""What all tests share: the option that rewrites golden files.

Must never: hold fixtures of one room; those stand in the room's own conftest.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-goldens`: write what came out instead of comparing with it."""
    parser.addoption(
        "--update-goldens", action="store_true", help="rewrite golden files with today's output"
    )
