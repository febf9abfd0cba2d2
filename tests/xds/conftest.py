"""Fixtures of the config stream's tests."""

from __future__ import annotations

import pytest

from proxy.pki import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()
