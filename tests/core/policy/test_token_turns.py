"""Tokens of several clients: whose turn it is, and who gives way where there is no room."""

from __future__ import annotations

import pytest

from auth.jwt.issuer import jwk, provider, token
from core.policy.token_verifiers import VerifierRig
from edgefast.core.policy.token_verification import BUDGET
from edgefast.core.policy.tokenqueue import QUEUE, QUEUE_BYTES

pytestmark = pytest.mark.pure

#: Seconds of a token that takes all of a turn.
FULL = BUDGET * 1.01
LOCAL = provider(jwk("ES256"))


def junk(number: int) -> bytes:
    return token(sub=f"{number}")[:-4] + b"AAAA"


def test_clients_have_turns() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    rig.word(verifier, b"x")
    crowd = [rig.ask(verifier, junk(n), b"crowd") for n in range(QUEUE - 1)]
    other = [rig.ask(verifier, token(sub=f"{n}"), b"other") for n in range(2)]
    assert all(one.outcome is None for one in (*crowd[:-1], *other))
    for _ in range(5):
        rig.turn()
    assert [one.outcome.good for one in other if one.outcome is not None] == [True, True]
    assert rig.words[:5] == ["signature", "busy", "", "signature", ""]
    assert crowd[-1].outcome is not None and crowd[-1].outcome.word == "busy", "it gave way"
    assert crowd[-2].outcome is None


def test_who_holds_most_gives_way_and_nobody_for_it() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    rig.word(verifier, b"x")
    for n in range(QUEUE):
        assert rig.ask(verifier, b"%d" % n, b"%d" % (n % 2)).outcome is None
    assert rig.ask(verifier, b"a", b"0").outcome is not None, "as much as the other one already"
    assert rig.words == []
    assert rig.ask(verifier, b"b", b"2").outcome is None
    rig.turn()
    assert rig.words.count("busy") == 1
    assert rig.token_verifier.waiting <= QUEUE
    rig.settle()
    assert len(rig.words) == QUEUE + 1 and rig.token_verifier.waiting == 0


def test_of_bytes_too() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    rig.word(verifier, b"x")
    large = QUEUE_BYTES // 16_003
    for n in range(large):
        assert rig.ask(verifier, b"%03d" % n + b"x" * 16_000, b"crowd").outcome is None
    assert rig.ask(verifier, b"x" * 16_000, b"crowd").outcome is not None
    assert rig.ask(verifier, b"y" * 16_000, b"other").outcome is None
    rig.settle()
    assert rig.words.count("busy") == 1 and rig.words.count("malformed") == large
