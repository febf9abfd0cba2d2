"""Which check answers where several would, and what of a request is left when it does: as core/exchange/exchange.pyx has it."""

from __future__ import annotations

from hashlib import sha256

import pytest

from edgefast import ir
from edgefast.why import read_ask
from edgefast.why.explain import explain
from edgefast.why.outcome import find_outcome
from tests.tokens import issuer
from why.test_guarded import guard, serve

pytestmark = pytest.mark.pure

KEYS = ir.PolicyUnit(
    name="security/ns/who#apiKeyAuth",
    api_key=ir.ApiKeyAuth(
        clients=((sha256(b"k-ann").digest(), "ann"),),
        places=ir.CredentialPlaces(params=("key",)),
        sanitize=True,
    ),
)


@pytest.mark.parametrize(("path", "wanted"), [("/a", ("rewrite", 500)), ("/b", ("endpoints", 503))])
def test_a_path_is_rewritten_before_endpoints_are_looked_for(
    path: str, wanted: tuple[str, int]
) -> None:
    to = ir.PathRewrite(kind="regex", value="", pattern="^/a$")
    empty = (ir.Cluster(name="service/ns/web/80"),)
    served = serve(clusters=empty, rewrite=ir.Rewrite(path=to))
    asked = read_ask("GET", f"http://a.example{path}", (), "192.0.2.1")
    (answer,) = explain(served, asked).answers
    assert (answer.check, answer.status) == wanted


def test_a_redirect_has_no_key_in_it() -> None:
    served = guard(KEYS, redirect=ir.Redirect(status=301, scheme="https"))
    asked = read_ask("GET", "http://a.example/x?y=1&key=k-ann", (), "192.0.2.1")
    for found in (explain(served, asked).answers, find_outcome(served, asked).answers):
        assert [one.location for one in found] == ["https://a.example/x?y=1"]


def test_what_one_proof_takes_out_is_no_token_for_the_next() -> None:
    """The key's parameter is where a token may be, too; it is none, which is only told where it is."""
    provider = ir.JwtProvider(
        name="p",
        issuer=issuer.ISSUER,
        keys=issuer.key_set(issuer.jwk("EdDSA")),
        places=ir.CredentialPlaces(params=("key",)),
    )
    tokens = ir.PolicyUnit(
        name="security/ns/who#jwt", jwt=ir.Jwt(providers=(provider,), optional=True)
    )
    asked = read_ask("GET", "http://a.example/?key=k-ann", (), "192.0.2.1")
    (answer,) = explain(guard(KEYS, tokens), asked).answers
    assert answer.kind == "backend"
    (answer,) = explain(guard(tokens), asked).answers
    assert answer.status == 401
