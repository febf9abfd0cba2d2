"""Providers that the tests of this folder share, and the clients that they register."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from identity_provider.certified import CertifiedProvider
from identity_provider.hostile import HostileProvider
from identity_provider.hydra import Hydra
from identity_provider.keycloak import Keycloak
from identity_provider.provider import IdentityProvider

_KINDS = {"certified": CertifiedProvider, "hydra": Hydra, "keycloak": Keycloak}


@pytest.fixture(
    scope="module",
    params=[
        "certified",
        "hydra",
        pytest.param("keycloak", marks=pytest.mark.heavy),
    ],
)
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IdentityProvider]:
    """Each provider that others wrote."""
    running: IdentityProvider = _KINDS[request.param](tmp_path_factory.mktemp(request.param))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def _hostile() -> Iterator[HostileProvider]:
    running = HostileProvider()
    yield running
    running.stop()


@pytest.fixture
def hostile(_hostile: HostileProvider) -> Iterator[HostileProvider]:
    """The provider that breaks rules; every test begins with one that keeps them."""
    yield _hostile
    _hostile.reset()
