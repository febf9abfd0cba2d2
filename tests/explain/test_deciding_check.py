"""Which check answers where several would, and what of a request is left when it does: as core/exchange/exchange.pyx has it."""

from __future__ import annotations

from hashlib import sha256

import pytest

from edgefast import ir
from edgefast.explain import Explanation, read_request_spec
from edgefast.explain.explain import explain
from edgefast.explain.outcome import find_outcome
from explain.test_policy_checks import guard, serve
from tests.auth.jwt import issuer

pytestmark = pytest.mark.pure

KEYS = ir.PolicyUnit(
    name="security/ns/who#apiKeyAuth",
    api_key=ir.ApiKeyAuth(
        clients=((sha256(b"k-ann").digest(), "ann"),),
        places=ir.CredentialExtractors(params=("key",)),
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
    asked = read_request_spec("GET", f"http://a.example{path}", (), "192.0.2.1")
    (answer,) = explain(served, asked).answers
    assert (answer.check, answer.status) == wanted


def test_http10() -> None:
    """Refused without the setting; with it, a request without Host has the default host."""

    def ask(http: ir.HttpSettings, *headers: str) -> Explanation:
        served = serve(http=http)
        return explain(served, read_request_spec("GET", "http://a.example/", headers, http10=True))

    (answer,) = ask(ir.HttpSettings()).answers
    assert (answer.check, answer.status) == ("head", 426)
    assert "http10 of EdgeProxy spec.http" in answer.fix
    found = ask(ir.HttpSettings(http10=True))
    assert found.answers[0].kind == "backend" and found.request.http10
    assert [one.partition(":")[0] for one in found.notes] == ["HTTP/1.0"]
    (answer,) = ask(ir.HttpSettings(http10=True), "Host:").answers
    assert (answer.status, "defaultHost" in answer.fix) == (400, True)
    found = ask(ir.HttpSettings(http10=True, http10_host="_"), "Host:")
    assert (found.request.host, found.answers[0].kind) == ("_", "backend")
    assert found.notes[-1].endswith(": _")


def test_a_redirect_has_no_key_in_it() -> None:
    served = guard(KEYS, redirect=ir.Redirect(status=301, scheme="https"))
    asked = read_request_spec("GET", "http://a.example/x?y=1&key=k-ann", (), "192.0.2.1")
    for found in (explain(served, asked).answers, find_outcome(served, asked).answers):
        assert [one.location for one in found] == ["https://a.example/x?y=1"]


def test_what_one_proof_takes_out_is_no_token_for_the_next() -> None:
    """The key's parameter is where a token may be, too; it is none, which is only told where it is."""
    provider = ir.JwtProvider(
        name="p",
        issuer=issuer.ISSUER,
        keys=issuer.key_set(issuer.jwk("EdDSA")),
        places=ir.CredentialExtractors(params=("key",)),
    )
    tokens = ir.PolicyUnit(
        name="security/ns/who#jwt", jwt=ir.Jwt(providers=(provider,), optional=True)
    )
    asked = read_request_spec("GET", "http://a.example/?key=k-ann", (), "192.0.2.1")
    (answer,) = explain(guard(KEYS, tokens), asked).answers
    assert answer.kind == "backend"
    (answer,) = explain(guard(tokens), asked).answers
    assert answer.status == 401
