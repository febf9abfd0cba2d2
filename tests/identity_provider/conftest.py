"""Providers, sites and browsers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.browser import Browser
from identity_provider.application import Application
from identity_provider.browser import Window, start_browser, window
from identity_provider.certified import CertifiedProvider
from identity_provider.edgefast_site import EdgefastSite
from identity_provider.hostile import HostileProvider
from identity_provider.hydra import Hydra
from identity_provider.keycloak import Keycloak
from identity_provider.provider import IdentityProvider
from identity_provider.site import AFTER_LOGOUT, CALLBACK, Site
from identity_provider.user_agent import UserAgent
from wire.harness.certificates import Authority, Pair

_KINDS = {"certified": CertifiedProvider, "hydra": Hydra, "keycloak": Keycloak}
HOST = "app.example.test"


@pytest.fixture(
    scope="module",
    params=[
        "certified",
        "hydra",
        pytest.param("keycloak", marks=[pytest.mark.heavy, pytest.mark.timeout(600)]),
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


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The authority of the site's certificate."""
    return Authority()


@pytest.fixture(scope="session")
def pair(authority: Authority) -> Pair:
    """The site's certificate; it is also valid for its siblings."""
    return authority.issue([HOST, "*.example.test"])


@pytest.fixture(scope="module", params=["application", "edgefast"])
def _site(
    request: pytest.FixtureRequest, authority: Authority, pair: Pair, _hostile: HostileProvider
) -> Iterator[Site]:
    running: Site
    if request.param == "application":
        running = Application(HOST, authority.server_context(pair))
    else:
        running = EdgefastSite(HOST, pair)
    client = _hostile.register(f"{running.origin}{CALLBACK}", f"{running.origin}{AFTER_LOGOUT}")
    try:
        running.use(_hostile.issuer, client)
        yield running
    finally:
        running.stop()


@pytest.fixture
def site(_site: Site, hostile: HostileProvider) -> Site:
    """A site that signs its users in at the hostile provider, which keeps the rules until a test switches one off."""
    hostile.calls.clear()  # of the site's start
    return _site


@pytest.fixture
def agent(authority: Authority) -> Iterator[UserAgent]:
    """A browser without scripts."""
    with UserAgent(authority.client_context()) as running:
        yield running


@pytest.fixture(scope="session")
def browser(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium."""
    with start_browser(tmp_path_factory.mktemp("chromium"), [pair]) as running:
        yield running


@pytest.fixture
def opened(browser: Browser) -> Iterator[Window]:
    """A window without cookies."""
    with window(browser) as one:
        yield one
