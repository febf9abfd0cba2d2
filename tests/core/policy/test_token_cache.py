"""Tokens that were verified: how long they are believed, how many are kept, and which goes first."""

from __future__ import annotations

import json
import random
import sys
import tracemalloc
from typing import Any

import pytest

from auth.jwt.issuer import NOW, jwk, key_set, provider, token
from core.policy.token_verifiers import VerifierRig, remote
from edgefast.auth.jwt import key_set as key_set_module
from edgefast.auth.jwt.outcome import Outcome
from edgefast.auth.jwt.token_check import TrustedKey
from edgefast.core.engine import TOKEN_BYTES, TOKENS, TokenCache, cost_of_token

pytestmark = pytest.mark.pure


def trusted() -> TrustedKey:
    return TrustedKey(key_set_module.read(key_set(jwk("ES256"))).keys[0])


def good(until: float = NOW + 1, claims: Any = None, key: TrustedKey | None = None) -> Outcome:
    return Outcome("", "p", claims or {}, until=until, key=key or trusted())


def test_until_it_ends() -> None:
    cache = TokenCache()
    cache.keep(1, b"a", good(), NOW)
    assert cache.find(1, b"a", NOW + 0.9) is not None
    assert cache.find(2, b"a", NOW) is None
    assert cache.find(1, b"a", NOW + 1) is None
    assert (len(cache), cache.size) == (0, 0)


def test_until_its_key_goes() -> None:
    cache = TokenCache()
    key = trusted()
    cache.keep(1, b"a", good(key=key), NOW)
    key.trusted = False
    assert cache.find(1, b"a", NOW) is None
    cache.keep(1, b"a", good(key=key), NOW)
    assert (len(cache), cache.size) == (0, 0)


@pytest.mark.parametrize("word", ["malformed", "signature", "kid", "keys", "busy", "expired"])
def test_refusals_of_strangers_are_not_kept(word: Any) -> None:
    cache = TokenCache()
    cache.keep(1, b"a", Outcome(word), NOW)
    cache.keep(1, b"b", good(until=NOW), NOW)
    assert len(cache) == 0


def test_as_many_as_may_be_the_least_used_goes_first() -> None:
    cache = TokenCache()
    one = good()
    for number in range(TOKENS):
        cache.keep(1, b"%d" % number, one, NOW)
    assert cache.find(1, b"0", NOW) is one
    cache.keep(1, b"more", one, NOW)
    assert len(cache) == TOKENS
    assert cache.find(1, b"0", NOW) is one
    assert cache.find(1, b"1", NOW) is None
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)


def test_two_of_one_end_are_two() -> None:
    """A place is found by a token's end: another token with the same one takes it, and is never taken for it."""
    cache = TokenCache()
    one, other = b"a" * 100 + b"z" * 16, b"b" * 100 + b"z" * 16
    cache.keep(1, one, good(), NOW)
    assert cache.find(1, other, NOW) is None
    assert cache.find(1, one[1:], NOW) is None
    cache.keep(1, other, good(), NOW)
    assert cache.find(1, other, NOW) is not None
    assert cache.find(1, one, NOW) is None
    assert (len(cache), cache.size) == (1, cost_of_token(other, good()))


def test_as_many_bytes_as_may_be() -> None:
    cache = TokenCache()
    for number in range(2000):
        cache.keep(1, b"x" * 9000 + b"%5d" % number, good(claims={"a": "x" * 7000}), NOW)
        assert cache.size <= TOKEN_BYTES
    assert 400 < len(cache) < 600
    cache.keep(1, b"large", good(claims={"a": "x" * TOKEN_BYTES}), NOW)
    assert cache.find(1, b"large", NOW) is None
    again = cache.size
    cache.keep(1, b"x" * 9000 + b" 1999", good(claims={"a": "x" * 7000}), NOW)
    assert cache.size == again


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "jane", "roles": ["a", "b"], "deep": {"er": {"x": 1.5, "y": None}}},
        {"x": [{} for _ in range(3000)]},
        {"x": [[] for _ in range(3000)]},
        {f"k{n}": n * 10**20 for n in range(1000)},
        {"x": [f"{n:04}" for n in range(1500)]},
    ],
)
def test_costs_are_what_is_held(claims: dict[str, Any]) -> None:
    text = json.dumps(claims)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        read = json.loads(text)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    cost = cost_of_token(b"", Outcome("", "p", read))
    assert 0.9 * held < cost < 2.5 * held + 2048
    assert cost > sys.getsizeof(read)


def test_against_a_plain_table() -> None:
    """Whatever is asked in whatever order: never anything but what was kept, has time left and a key."""
    chance = random.Random("cache")
    cache = TokenCache(tokens=8, size=100_000)
    keys = [trusted() for _ in range(3)]
    kept: dict[bytes, Outcome] = {}
    now = float(NOW)
    for _ in range(20_000):
        name = b"%d" % chance.randrange(16)
        match chance.randrange(8):
            case 0 | 1 | 2:
                one = good(now + chance.randrange(-1, 20), key=chance.choice(keys))
                cache.keep(1, name, one, now)
                if one.until > now and one.key is not None and one.key.trusted:
                    kept[name] = one
            case 3:
                now += 1
            case 4 if chance.random() < 0.02:
                at = chance.randrange(3)
                keys[at].trusted = False
                keys[at] = trusted()
            case _:
                found = cache.find(1, name, now)
                if found is not None:
                    assert found is kept[name]
                    assert found.until > now and found.key is not None and found.key.trusted
        assert len(cache) <= 8


def test_a_policy_that_changes_begins_anew_and_shares_the_room() -> None:
    rig = VerifierRig()
    first = rig.verifier(provider(jwk("ES256")))
    made = token()
    assert (rig.word(first, made), len(rig.token_verifier.cache)) == ("", 1)
    second = rig.verifier(provider(jwk("ES256"), audiences=("other",)))
    assert second.look(made) is None
    assert rig.word(second, made) == "audience"
    assert first.look(made) is not None
    denied = second.look(made)
    assert denied is not None and denied.status == 403, (
        "signed, and for somebody else: that is kept"
    )
    rig.wait(361)
    assert first.look(made) is None and second.look(made) is None
    assert remote().keys == b""
