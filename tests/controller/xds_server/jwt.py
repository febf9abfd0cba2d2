"""Tokens of ServiceAccounts for tests: JWTs that nobody signed, and an API server's answers to them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from controller.kube.client import TokenReview
from tests.controller.xds_server.loopback import FLEET, POD

AUDIENCE = "edge-gateway.edge-gateway-system.svc.cluster.local"


def make_token(
    audience: str | list[str] = AUDIENCE, *, seconds: float = 3600, **claims: Any
) -> str:
    """Return a JWT with these claims; the signature is text."""
    audiences = [audience] if isinstance(audience, str) else audience
    payload = {"aud": audiences, "exp": time.time() + seconds, **claims}
    parts = (json.dumps(one).encode() for one in ({"alg": "ES256"}, payload))
    head, body = (base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in parts)
    return f"{head}.{body}.c2VjcmV0LXNpZ25hdHVyZQ"


class Reviewer:
    """Answers as told, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers: dict[str, TokenReview | Exception] = {}

    async def __call__(self, token: str, audiences: Sequence[str]) -> TokenReview:
        self.asked += 1
        answer = self.answers.get(token, TokenReview(error="unknown"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def accept(self, token: str, **more: Any) -> str:
        """Accept a token as one of FLEET's ServiceAccount, bound to POD."""
        self.answers[token] = accepted(**more)
        return token


def accepted(
    fleet: str = FLEET,
    *,
    pod: str | None = POD,
    audiences: Sequence[str] = (AUDIENCE,),
    groups: Sequence[str] = ("system:serviceaccounts", "system:authenticated"),
    username: str = "",
) -> TokenReview:
    """Return what an API server says of a good token."""
    extra: Mapping[str, tuple[str, ...]] = (
        {"authentication.kubernetes.io/pod-name": (pod,)} if pod else {}
    )
    return TokenReview(
        authenticated=True,
        username=username or "system:serviceaccount:" + fleet.replace("/", ":"),
        groups=tuple(groups),
        extra=extra,
        audiences=tuple(audiences),
    )
