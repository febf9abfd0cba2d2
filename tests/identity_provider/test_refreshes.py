"""edgefast refreshes sessions at providers that others wrote: tokens of a few seconds, requests over several of them."""

from __future__ import annotations

import time
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
_KINDS = {"certified": CertifiedProvider, "hydra": Hydra}


@pytest.mark.parametrize("kind", _KINDS)
def test_session_outlives_its_tokens(
    kind: str, pair: Pair, agent: UserAgent, tmp_path: Path
) -> None:
    provider: IdentityProvider = _KINDS[kind](tmp_path, access_token_seconds=_SECONDS)
    site = EdgefastSite("app.example.test", pair, forwardIDToken={"header": "x-id-token"})
    try:
        client = provider.register(f"{site.origin}{CALLBACK}", f"{site.origin}{AFTER_LOGOUT}")
        site.use(provider.issuer, client)
        assert agent.follow(f"{site.origin}/").status == 200
        seen = {site.calls[-1].headers["x-id-token"]}
        deadline = time.monotonic() + 60
        while len(seen) < 4:  # three refreshes, each with the refresh token of the one before
            assert time.monotonic() < deadline
            assert agent.fetch(f"{site.origin}/").status_code == 200
            seen.add(site.calls[-1].headers["x-id-token"])
            time.sleep(0.05)
    finally:
        provider.stop()
        site.stop()
