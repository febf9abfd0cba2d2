"""What comes of tokens: times, issuers, audiences, keys and several providers; good ones are good for PyJWT, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auth.jwt.issuer import ISSUER, NOW, claims, judge, jwk, key_set, provider, sign, token
from edgefast.auth.jwt import key_set as key_set_module
from edgefast.auth.jwt.compact import read_token
from edgefast.auth.jwt.outcome import STATUS, Outcome
from edgefast.auth.jwt.token_check import SKEW, Plan, Provider, TrustedKeys, look_over

pytestmark = pytest.mark.pure

BOTH = provider(jwk("ES256", kid="k1"), jwk("RS256", kid="k2"))


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"exp": NOW - SKEW + 1}, ""),
        ({"exp": NOW - SKEW}, "expired"),
        ({"exp": NOW - SKEW + 0.5}, ""),
        ({"exp": -1}, "expired"),
        ({"exp": None}, "no_expiration"),
        ({"exp": None, "iss": "other"}, "issuer"),
        ({"exp": 10**300}, ""),
        ({"exp": 10**400}, ""),
        ({"nbf": NOW + SKEW}, ""),
        ({"nbf": NOW + SKEW + 1}, "early"),
        ({"iat": NOW + SKEW}, ""),
        ({"iat": NOW + SKEW + 1}, "early"),
        ({"iat": 10**400}, "early"),
        ({"iat": None}, ""),
        ({"iss": None}, "issuer"),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"aud": None}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": "API"}, "audience"),
        ({"aud": ["web", "api"]}, ""),
    ],
)
def test_claims_that_decide(more: dict[str, Any], word: str) -> None:
    outcome = judge(token(**more), BOTH)
    assert outcome.word == word
    assert outcome.status == {"": 0, "audience": 403}.get(word, 401)
    assert outcome.good == (outcome.claims is not None) == (word == "")


@pytest.mark.parametrize(
    "more",
    [
        {"exp": str(NOW + 300)},
        {"exp": True},
        {"exp": None, "nbf": [NOW]},
        {"iat": {}},
        {"aud": 7},
        {"aud": ["api", 7]},
        {"aud": {"api": 1}},
        {"sub": 7},
        {"jti": 7},
        {"iss": [ISSUER]},
    ],
)
def test_claims_of_another_type_are_malformed(more: dict[str, Any]) -> None:
    made = sign(b'{"alg":"ES256"}', json.dumps(claims(**more)).encode())
    assert judge(made, BOTH).word == "malformed"


def test_a_provider_may_do_without_an_expiration() -> None:
    lenient = provider(jwk("ES256", kid="k1"), require_expiration=False)
    assert judge(token(exp=None), lenient).word == ""
    assert judge(token(exp=None), BOTH, lenient).word == ""
    assert judge(token(number=1, exp=None), lenient).word == "signature"
    assert judge(token(exp=NOW - SKEW), lenient).word == "expired"


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat", "iss", "aud", "sub"])
def test_null_is_no_value(claim: str) -> None:
    made = sign(b'{"alg":"ES256"}', json.dumps({**claims(), claim: None}).encode())
    assert judge(made, BOTH).word == "malformed"


@pytest.mark.parametrize(
    ("alg", "number", "kid", "word"),
    [
        ("ES256", 0, "k1", ""),
        ("ES256", 0, None, ""),
        ("RS256", 0, "k2", ""),
        ("PS512", 0, "k2", ""),
        ("ES256", 0, "k2", "algorithm"),
        ("RS256", 0, "k1", "algorithm"),
        ("ES256", 0, "K1", "kid"),
        ("ES256", 0, "k3", "kid"),
        ("ES256", 1, "k1", "signature"),
        ("ES256", 1, None, "signature"),
        ("ES384", 0, None, "algorithm"),
        ("EdDSA", 0, None, "algorithm"),
        ("ES384", 0, "k1", "algorithm"),
    ],
)
def test_which_key(alg: str, number: int, kid: str | None, word: str) -> None:
    header = {"kid": kid} if kid is not None else None
    assert judge(token(alg, number, header), BOTH).word == word


def test_keys_without_a_name_are_tried_for_any() -> None:
    spec = provider(jwk("ES256"), jwk("ES256", 1, kid="k1"))
    assert judge(token(header={"kid": "whatever"}), spec).good
    assert judge(token(header={"kid": "k1"}), spec).good
    assert judge(token(number=2, header={"kid": "whatever"}), spec).word == "signature"
    assert judge(token("RS256", header={"kid": "whatever"}), spec).word == "kid"


def test_a_key_is_for_its_own_algorithm() -> None:
    spec = provider({**jwk("RS256", kid="k"), "alg": "RS512"})
    assert judge(token("RS512", header={"kid": "k"}), spec).good
    for alg in ("RS256", "PS512"):
        assert judge(token(alg, header={"kid": "k"}), spec).word == "algorithm"


def test_the_number_of_keys_that_are_tried_is_bounded() -> None:
    same = [jwk("ES256", kid=f"k{n}") for n in range(16)]
    assert judge(token(), provider(*same)).good
    assert judge(token(), provider(*same, jwk("ES256", kid="one more"))).word == "kid"
    crowd = [provider(*same, name=f"p{n}", issuer="") for n in range(5)]
    assert judge(token(number=1), *crowd[:4]).word == "signature"
    assert judge(token(number=1), *crowd).word == "kid"


def test_any_provider_will_do() -> None:
    first = provider(jwk("ES256", 1), name="first", issuer="https://first.example.com")
    second = provider(jwk("ES256"), name="second")
    any_ = provider(jwk("ES256", 2), name="any", issuer="", audiences=())
    for order in ((first, second, any_), (any_, second, first)):
        assert judge(token(), *order).provider == "second"
        assert judge(token(number=2, iss="who"), *order).provider == "any"
        assert judge(token(number=2, iss=None, aud=None), *order).provider == "any"
        assert judge(token(number=1), *order).word == "signature"
        assert judge(token(number=3), *order).word == "signature"
        assert judge(token(number=1, iss="https://first.example.com"), *order).provider == "first"
    denied = judge(token(aud="x"), first, second, any_)
    assert (denied.word, denied.status, denied.provider) == ("audience", 403, "second")
    assert judge(token(iss="who"), first, second).word == "issuer"


def test_two_audiences_of_one_issuer() -> None:
    api, web = (provider(jwk("ES256"), name=one, audiences=(one,)) for one in ("api", "web"))
    assert judge(token(aud="web"), api, web).provider == "web"
    assert judge(token(aud="api"), web, api).provider == "api"


def verdict(data: bytes, *providers: Provider) -> Outcome:
    plan = look_over(read_token(data), providers, NOW)
    return plan if isinstance(plan, Outcome) else plan.try_keys()


def test_without_keys_it_is_not_the_tokens_fault() -> None:
    spec = provider(jwk("ES256"))
    nothing = Provider(spec, TrustedKeys())
    outcome = verdict(token(), nothing)
    assert (outcome.word, outcome.status) == ("keys", 503)
    assert verdict(token(exp=1), nothing).word == "expired"
    assert verdict(token(iss="x"), nothing).word == "issuer"
    other = Provider(
        provider(jwk("ES256", 1), issuer=""), TrustedKeys(key_set_module.read(spec.keys))
    )
    assert verdict(token(number=1), nothing, other).word == "keys"
    assert verdict(token(), nothing, other).good
    plan = look_over(read_token(token()), [nothing, other], NOW)
    assert isinstance(plan, Plan) and plan.unknown == (nothing,)


def test_a_denial_is_not_believed_for_long_while_others_may_know_better() -> None:
    spec = provider(jwk("ES256"), audiences=("web",))
    sure = Provider(spec, TrustedKeys(key_set_module.read(spec.keys)))
    assert verdict(token(), sure).until == NOW + 360
    unsure = verdict(token(), sure, Provider(provider(jwk("ES256"), issuer=""), TrustedKeys()))
    assert (unsure.word, unsure.until) == ("audience", 0.0)


def test_keys_that_go_take_what_they_verified_with_them() -> None:
    old, both, new = (
        key_set_module.read(key_set(*keys))
        for keys in (
            [jwk("ES256", kid="a")],
            [jwk("ES256", kid="a"), jwk("ES256", 1, kid="b")],
            [jwk("ES256", 1, kid="b")],
        )
    )
    keys = TrustedKeys(old)
    one = Provider(provider(jwk("ES256")), keys)
    first = verdict(token(header={"kid": "a"}), one)
    assert first.good and first.key is not None
    assert keys.replace(both) and not keys.replace(both)
    second = verdict(token(number=1, header={"kid": "b"}), one)
    assert first.key.trusted and second.good and second.key is not None
    assert keys.replace(new)
    assert not first.key.trusted and second.key.trusted
    assert verdict(token(header={"kid": "a"}), one).word == "kid"
    assert keys.replace(None) and not keys.replace(None)
    assert not second.key.trusted
    assert verdict(token(number=1, header={"kid": "b"}), one).word == "keys"
    assert keys.replace(old)
    assert not first.key.trusted, "what was taken back is not believed again"


def test_nobody_is_shown_a_token() -> None:
    made = token()
    outcome = judge(made, BOTH)
    assert "jane" not in repr(outcome) and "jane" not in repr(judge(token(aud="x"), BOTH))
    for word in STATUS:
        assert repr(Outcome(word)) == f"Outcome({word or 'good'!r}, '')"
