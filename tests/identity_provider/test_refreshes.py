"""edgefast refreshes sessions at providers that others wrote: tokens of a few seconds, requests over several of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from identity_provider.certified import CertifiedProvider
from identity_provider.edgefast_site import EdgefastSite
from identity_provider.hydra import Hydra
from identity_provider.provider import IdentityProvider
from identity_provider.site import AFTER_LOGOUT, CALLBACK
from identity_provider.user_agent import UserAgent
from wire.harness.certificates import Pair

pytestmark = pytest.mark.wire

_SECONDS = 2  # of tokens
_HEADER = "x-id-token"
_KINDS = {"certified": CertifiedProvider, "hydra": Hydra}


@pytest.fixture(params=_KINDS)
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[IdentityProvider]:
    running: IdentityProvider = _KINDS[request.param](tmp_path, access_token_seconds=_SECONDS)
    yield running
    running.stop()


@pytest.fixture
def site(provider: IdentityProvider, pair: Pair) -> Iterator[EdgefastSite]:
    running = EdgefastSite("app.example.test", pair, forwardIDToken={"header": _HEADER})
    try:
        client = provider.register(f"{running.origin}{CALLBACK}", f"{running.origin}{AFTER_LOGOUT}")
        running.use(provider.issuer, client)
        yield running
    finally:
        running.stop()


def test_session_outlives_its_tokens(site: EdgefastSite) -> None:
    """Three refreshes, each with the refresh token of the one before."""
    with UserAgent() as agent:
        assert agent.follow(f"{site.origin}/").status == 200
        seen = {site.calls[-1].headers[_HEADER]}
        deadline = time.monotonic() + 60
        while len(seen) < 4:
            assert time.monotonic() < deadline
            assert agent.fetch(f"{site.origin}/").status_code == 200
            seen.add(site.calls[-1].headers[_HEADER])
            time.sleep(0.05)
