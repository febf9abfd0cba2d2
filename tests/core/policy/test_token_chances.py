"""Any order of questions, cancellations, keys and time: each question is answered once, and never with more than its token deserves."""

from __future__ import annotations

import asyncio
import random

import pytest

from auth.jwt.issuer import jwk, key_set, provider, token
from core.policy.token_verifiers import URI, VerifierRig, remote
from edgefast.auth.jwt.outcome import Outcome
from edgefast.core.policy.token_requirements import make_verifiers
from edgefast.core.policy.token_verification import BUDGET, PATIENCE, TokenVerifier, VerifyRequest
from edgefast.ir.credentials import Jwt

pytestmark = pytest.mark.pure

_ALGORITHMS = ("ES256", "EdDSA", "ES384")
SETS = [
    tuple((alg, number) for alg in _ALGORITHMS for number in numbers)
    for numbers in ((0,), (0, 1), (1,), (1, 2))
]


def name(alg: str, number: int) -> str:
    return f"{alg}-{number}"


@pytest.mark.parametrize("seed", range(6))
def test_any_order(seed: int) -> None:
    chance = random.Random(f"desk {seed}")
    rig = VerifierRig(cost=BUDGET / chance.choice((0.7, 3, 50)))
    verifier = rig.verifier(remote())
    published: tuple[tuple[str, int], ...] = ()
    believed: set[tuple[str, int]] = set()  # at any time since a question was asked
    good = {
        (alg, number): token(alg, number, header={"kid": name(alg, number)})
        for alg in _ALGORITHMS
        for number in range(3)
    }
    answers: dict[VerifyRequest, list[Outcome]] = {}
    meant: dict[VerifyRequest, tuple[str, int] | None] = {}
    gone: set[VerifyRequest] = set()

    def take(question: VerifyRequest, outcome: Outcome) -> None:
        answers[question].append(outcome)

    for _ in range(1500):
        match chance.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                key = chance.choice(list(good))
                made = good[key]
                if bad := chance.random() < 0.2:
                    made = made[:-6] + bytes(chance.choices(b"ABCDabcd", k=5)) + b"A"
                known = verifier.look(made)
                if known is not None:
                    assert known.good and not bad and key in published
                    continue
                box: list[VerifyRequest] = []
                question = verifier.submit(made, lambda outcome, box=box: take(box[0], outcome))  # type: ignore[misc]
                box.append(question)
                answers[question] = [] if question.outcome is None else [question.outcome]
                meant[question] = None if bad else key
            case 5 | 6:
                rig.turn()
            case 7:
                while not rig.landed.empty():
                    rig.land()
            case 8:
                published = chance.choice(SETS)
                believed |= set(published)
                rig.token_verifier.remote.use(
                    (URI, "", ""), key_set(*(jwk(*one, kid=name(*one)) for one in published))
                )
            case 9:
                rig.wait(chance.random())
            case 10 if chance.random() < 0.1:
                published = ()
                rig.token_verifier.remote.forget((URI, "", ""))
            case _:
                waiting = [one for one in answers if not answers[one] and one not in gone]
                if waiting:
                    left = chance.choice(waiting)
                    left.cancel()
                    gone.add(left)
    while rig.token_verifier.waiting or rig.soon:
        while rig.token_verifier._threaded:
            rig.land()
        rig.settle()
        rig.wait(PATIENCE)
    for question, said in answers.items():
        if question in gone:
            assert said == []
            continue
        (outcome,) = said
        assert outcome.word in {"", "signature", "kid", "keys", "malformed"}
        if outcome.good:
            key_meant = meant[question]
            assert key_meant is not None and key_meant in believed
            assert outcome.key is not None and outcome.key.key.kid == name(*key_meant)
    assert (
        not verifier.jobs
        and rig.token_verifier._queue.count == 0
        and rig.token_verifier._parked == 0
    )
    assert any(said and said[0].good for said in answers.values())
    rig.token_verifier.close()


def test_on_a_loop_of_the_standard_library() -> None:
    async def main() -> list[str]:
        token_verifier = TokenVerifier(asyncio.get_running_loop(), lambda *_: None)
        spec = provider(*(jwk(alg, kid=alg) for alg in ("ES256", "ES384", "ES512")))
        (verifier,) = make_verifiers(token_verifier, Jwt((spec,)))
        answered: asyncio.Queue[Outcome] = asyncio.Queue()
        questions = [
            verifier.submit(
                token(alg, header={"kid": alg}, iat=None, sub=f"{n}"), answered.put_nowait
            )
            for n in range(100)
            for alg in ("ES256", "ES384", "ES512")
        ]
        at_once = [one.outcome.word for one in questions if one.outcome is not None]
        async with asyncio.timeout(60):
            later = [(await answered.get()).word for _ in range(300 - len(at_once))]
        token_verifier.close()
        assert token_verifier.waiting == 0
        return at_once + later

    assert asyncio.run(main()) == [""] * 300
