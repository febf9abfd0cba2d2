"""Tokens on their way: what is verified at once, what waits, for how long, and who is told."""

from __future__ import annotations

import pytest

from auth.jwt.issuer import NOW, jwk, key_set, provider, token
from core.policy.token_verifiers import URI, VerifierRig, remote
from edgefast.auth.jwt.keyset import KeySetError
from edgefast.core.policy.token_verifier import BUDGET, PARKED, PATIENCE, THREADED
from edgefast.core.policy.tokenqueue import QUEUE, QUEUE_BYTES
from edgefast.core.policy.verifier import make_verifiers
from edgefast.ir.credentials import CredentialExtractors, Jwt, JwtProvider

pytestmark = pytest.mark.pure

#: Seconds of a token that takes all of a turn.
FULL = BUDGET * 1.01
LOCAL = provider(jwk("ES256"))
SLOW = provider(jwk("ES384", kid="a"), jwk("ES512", kid="b"))


def junk(number: int, alg: str = "ES256") -> bytes:
    return token(alg, sub=f"{number}")[:-4] + b"AAAA"


# --- in line --------------------------------------------------------------------------------------------------------


def test_at_once_and_then_known() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(LOCAL)
    made = token()
    assert verifier.look(made) is None
    question = desk.ask(verifier, made)
    assert question.outcome is not None and question.outcome.good
    known = verifier.look(bytes(bytearray(made)))
    assert known is question.outcome and known.claims is not None and known.claims["sub"] == "jane"
    desk.settle()
    assert desk.words == [] and desk.get_token_verifier.waiting == 0 and not verifier.jobs


def test_what_is_bad_is_bad_each_time() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(LOCAL)
    assert [desk.word(verifier, one) for one in (junk(1), junk(1), b"x", token(exp=1))] == [
        "signature",
        "signature",
        "malformed",
        "expired",
    ]
    assert len(desk.get_token_verifier.cache) == 0


def test_a_turn_has_a_budget() -> None:
    desk = VerifierRig(cost=FULL / 4)
    verifier = desk.verifier(LOCAL)
    said = [desk.word(verifier, junk(n)) for n in range(10)]
    assert said == ["signature"] * 4 + [None] * 6
    desk.turn()
    assert desk.words == ["signature"] * 4
    assert desk.word(verifier, junk(99)) is None, "behind those who wait"
    desk.turn()
    assert desk.words == ["signature"] * 7
    desk.turn()
    assert desk.word(verifier, junk(100)) == "signature"
    desk.settle()
    assert desk.word(verifier, token()) == ""


def test_the_queue_has_an_end() -> None:
    desk = VerifierRig(cost=FULL)
    verifier = desk.verifier(LOCAL)
    said = [desk.word(verifier, b"%d" % n) for n in range(QUEUE + 3)]
    assert said == ["malformed"] + [None] * QUEUE + ["busy"] * 2
    assert desk.settle() == QUEUE + 1
    assert desk.words == ["malformed"] * QUEUE and desk.get_token_verifier.waiting == 0


def test_and_so_have_its_bytes() -> None:
    desk = VerifierRig(cost=FULL)
    verifier = desk.verifier(LOCAL)
    said = [desk.word(verifier, b"%d" % n + b"x" * 16_000) for n in range(600)]
    assert said.count(None) == QUEUE_BYTES // 16_003 and said[-1] == "busy"
    desk.settle()
    assert desk.word(verifier, b"x") == "malformed"
    desk.settle()
    assert desk.word(verifier, token()) == ""


def test_one_verification_for_all_who_ask() -> None:
    desk = VerifierRig(cost=FULL)
    verifier = desk.verifier(LOCAL)
    desk.word(verifier, b"x")
    made = token()
    questions = [desk.ask(verifier, made) for _ in range(QUEUE + 1)]
    assert [one.outcome is None for one in questions] == [True] * QUEUE + [False]
    assert desk.get_token_verifier.waiting == 1
    questions[0].cancel()
    assert desk.settle() == 2
    assert desk.words == [""] * (QUEUE - 1)
    assert questions[0].outcome is None and questions[1].outcome is questions[2].outcome


def test_who_goes_is_not_called_and_costs_nothing() -> None:
    desk = VerifierRig(cost=FULL)
    verifier = desk.verifier(LOCAL)
    desk.word(verifier, b"x")
    one = desk.ask(verifier, token())
    one.cancel()
    one.cancel()
    assert not verifier.jobs
    other = desk.ask(verifier, token())
    desk.settle()
    assert desk.words == [""] and other.outcome is not None and one.outcome is None


def test_a_request_that_fails_takes_nobody_along() -> None:
    desk = VerifierRig(cost=FULL)
    verifier = desk.verifier(LOCAL)
    desk.word(verifier, b"x")

    def fails(_: object) -> None:
        raise RuntimeError("gone")

    verifier.submit(token(), fails)
    desk.ask(verifier, token())
    desk.ask(verifier, token(sub="john"))
    desk.settle()
    assert desk.words == ["", ""]


# --- on a thread ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alg", "kid"), [("ES384", "a"), ("ES512", "b")])
def test_slow_ones_are_verified_beside_the_loop(alg: str, kid: str) -> None:
    desk = VerifierRig()
    verifier = desk.verifier(SLOW)
    made = token(alg, header={"kid": kid})
    assert desk.word(verifier, made) is None
    assert desk.word(verifier, made) is None
    desk.land()
    assert desk.words == ["", ""] and desk.word(verifier, made) == ""
    assert desk.word(verifier, token(alg, 1, header={"kid": kid})) is None
    desk.land()
    assert desk.words[2:] == ["signature"]
    assert desk.word(verifier, token(alg, header={"kid": "c"})) == "kid", "nothing to verify"
    desk.settle()
    assert desk.get_token_verifier.waiting == 0
    desk.get_token_verifier.close()


def test_the_thread_has_a_few_before_it() -> None:
    desk = VerifierRig(cost=0.0)
    verifier = desk.verifier(SLOW)
    count = THREADED + 70
    for number in range(count):
        assert desk.word(verifier, token("ES384", header={"kid": "a"}, sub=f"{number}")) is None
    assert desk.get_token_verifier.waiting == count
    landed = 0
    while landed < count:
        desk.land()
        landed += 1
        desk.settle()
    assert desk.words == [""] * count and desk.get_token_verifier.waiting == 0
    desk.get_token_verifier.close()


def test_what_the_thread_says_is_not_believed_when_the_key_went_meanwhile() -> None:
    desk = VerifierRig()
    desk.get_token_verifier.remote.use(URI, "", key_set(jwk("ES384", kid="a")))
    verifier = desk.verifier(remote())
    assert desk.word(verifier, token("ES384", header={"kid": "a"})) is None
    desk.get_token_verifier.remote.use(URI, "", key_set(jwk("ES384", 1, kid="b")))
    desk.land()
    assert desk.words == [] and verifier.jobs
    desk.settle()
    assert desk.asked == [(URI, "")], "another look found that nobody knows the key"
    desk.wait(PATIENCE)
    assert desk.words == ["kid"]
    desk.get_token_verifier.close()


def test_who_goes_while_the_thread_works() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(SLOW)
    desk.ask(verifier, token("ES384", header={"kid": "a"})).cancel()
    desk.land()
    desk.settle()
    assert desk.words == [] and desk.get_token_verifier.waiting == 0
    desk.get_token_verifier.close()


# --- keys that are fetched ------------------------------------------------------------------------------------------

OLD, NEW = jwk("ES256", kid="old"), jwk("ES256", 1, kid="new")
FIRST, SECOND = token(header={"kid": "old"}), token(number=1, header={"kid": "new"})


def test_the_first_keys_are_waited_for() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(remote())
    assert desk.word(verifier, FIRST) is None
    assert desk.asked == [], "the agent fetches them anyway"
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    desk.settle()
    assert desk.words == [""] and desk.word(verifier, FIRST) == ""


def test_but_not_for_long() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(remote())
    assert desk.word(verifier, FIRST) is None
    desk.wait(PATIENCE - 0.1)
    assert desk.words == []
    desk.wait(0.2)
    assert desk.words == ["keys"] and desk.get_token_verifier.waiting == 0


def test_where_none_can_be_had_it_is_said_at_once() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(remote())
    question = desk.ask(verifier, FIRST)
    desk.get_token_verifier.remote.use(URI, "", b"")
    desk.settle()
    assert desk.asked == [(URI, "")] and question.outcome is None
    desk.get_token_verifier.remote.use(URI, "", b"")
    desk.settle()
    assert question.outcome is not None and question.outcome.status == 503
    assert desk.word(verifier, FIRST) == "keys"
    desk.wait(10)
    assert desk.word(verifier, FIRST) is None
    assert len(desk.asked) == 2


def test_a_key_that_nobody_knows_is_asked_for() -> None:
    desk = VerifierRig()
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    verifier = desk.verifier(remote())
    assert desk.word(verifier, FIRST) == ""
    assert desk.word(verifier, SECOND) is None
    assert desk.word(verifier, token(header={"kid": "who"})) is None
    assert desk.asked == [(URI, "")]
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD, NEW))
    desk.settle()
    assert sorted(desk.words) == ["", "kid"]
    assert desk.word(verifier, FIRST) == "" == desk.word(verifier, SECOND)
    assert desk.word(verifier, token(header={"kid": "who"})) == "kid"
    assert desk.asked == [(URI, "")], "seldom"
    desk.wait(10)
    assert desk.word(verifier, token(header={"kid": "who"})) is None
    assert desk.asked == [(URI, "")] * 2


def test_rotation_without_a_refusal() -> None:
    """Tokens of the old key go on as long as it is published, those of the new one are good as soon as it is."""
    desk = VerifierRig()
    verifier = desk.verifier(remote())
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    steps = [((OLD,), FIRST), ((OLD, NEW), FIRST), ((OLD, NEW), SECOND), ((NEW,), SECOND)]
    for keys, made in steps:
        desk.get_token_verifier.remote.use(URI, "", key_set(*keys))
        assert desk.word(verifier, made) == ""
        desk.settle()
        assert verifier.look(made) is not None
    assert verifier.look(FIRST) is None, "its key is gone, and what it proved"
    assert desk.word(verifier, FIRST) is None
    desk.wait(PATIENCE)
    assert desk.words == ["kid"]


def test_the_same_keys_again_change_nothing() -> None:
    desk = VerifierRig()
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    verifier = desk.verifier(remote())
    assert desk.word(verifier, FIRST) == ""
    known = verifier.look(FIRST)
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    desk.get_token_verifier.remote.use(URI, "", b"no keys, by mistake")
    assert verifier.look(FIRST) is known


def test_keys_of_a_cluster_are_another_set() -> None:
    desk = VerifierRig()
    desk.get_token_verifier.remote.use(URI, "service/ns/idp/80", key_set(OLD))
    desk.get_token_verifier.remote.use(URI, "", key_set(NEW))
    verifier = desk.verifier(remote())
    assert desk.word(verifier, SECOND) == ""
    assert desk.word(verifier, FIRST) is None


def test_one_set_for_all_policies() -> None:
    desk = VerifierRig()
    one, other = desk.verifier(remote()), desk.verifier(remote(audiences=()))
    assert desk.word(one, FIRST) is None and desk.word(other, FIRST) is None
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    desk.settle()
    assert desk.words == ["", ""]
    desk.get_token_verifier.remote.forget(URI, "")
    assert one.look(FIRST) is None
    assert desk.word(one, FIRST) is None
    desk.get_token_verifier.remote.forget("https://unknown.example.com", "")
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    desk.settle()
    assert desk.words == ["", "", ""], "a table names it again"
    assert desk.word(one, FIRST) == "" == desk.word(other, FIRST)


def test_sets_that_nobody_has_are_gone() -> None:
    desk = VerifierRig()
    desk.verifier(remote())
    assert len(desk.get_token_verifier.remote._sets) == 0
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    assert len(desk.get_token_verifier.remote._sets) == 1
    desk.get_token_verifier.remote.forget(URI, "")
    assert len(desk.get_token_verifier.remote._sets) == 0


def test_strangers_do_not_wait_in_any_number() -> None:
    desk = VerifierRig(cost=0.0)
    verifier = desk.verifier(remote())
    said = [desk.word(verifier, token(header={"kid": f"k{n}"})) for n in range(PARKED + 2)]
    assert said == [None] * PARKED + ["keys"] * 2
    assert desk.get_token_verifier.waiting == PARKED
    local = desk.verifier(LOCAL)
    assert desk.word(local, token()) == "", "nobody else waits for that"
    desk.wait(PATIENCE)
    desk.settle()
    assert (
        desk.words == ["keys"] * PARKED
        and desk.get_token_verifier.waiting == 0
        and not verifier.jobs
    )


def test_who_goes_while_keys_are_on_their_way() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(remote())
    question = desk.ask(verifier, FIRST)
    question.cancel()
    assert desk.get_token_verifier.waiting == 0 and not verifier.jobs
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    desk.wait(PATIENCE)
    desk.settle()
    assert desk.words == [] and question.outcome is None


def test_an_answer_that_never_comes_is_waited_for_by_few() -> None:
    desk = VerifierRig()
    desk.get_token_verifier.remote.use(URI, "", key_set(OLD))
    verifier = desk.verifier(remote())
    assert desk.word(verifier, SECOND) is None
    desk.wait(PATIENCE)
    assert desk.words == ["kid"]
    desk.wait(10)
    assert desk.word(verifier, SECOND) is None
    assert desk.asked == [(URI, "")] * 2


# --- policies -------------------------------------------------------------------------------------------------------


def test_providers_that_look_elsewhere_have_a_verifier_of_their_own() -> None:
    desk = VerifierRig()
    cookie = CredentialExtractors(cookies=("token",))
    specs = (
        provider(jwk("ES256"), name="a", claim_headers=(("x-sub", "sub"),)),
        provider(jwk("ES256", 1), name="b", places=cookie, claim_headers=(("x-user", "sub"),)),
        provider(jwk("ES256", 2), name="c"),
    )
    head, other = make_verifiers(desk.get_token_verifier, Jwt(specs))
    assert (head.places, other.places) == (specs[0].places, cookie)
    assert (head.headers, other.headers) == ({"x-sub"}, {"x-user"})
    assert [desk.word(head, token(number=n)) for n in range(3)] == ["", "signature", ""]
    assert [desk.word(other, token(number=n)) for n in range(3)] == ["signature", "", "signature"]


def test_keys_that_are_none_are_refused() -> None:
    with pytest.raises(KeySetError):
        make_verifiers(VerifierRig().get_token_verifier, Jwt((JwtProvider("x", keys=b"?"),)))


def test_time_is_looked_at_each_time() -> None:
    desk = VerifierRig()
    verifier = desk.verifier(LOCAL)
    made = token(exp=NOW + 10, nbf=NOW + 61)
    assert desk.word(verifier, made) == "early"
    desk.wait(1)
    desk.settle()
    assert desk.word(verifier, made) == ""
    desk.wait(68.5)
    assert desk.word(verifier, made) == ""
    desk.wait(1)
    assert desk.word(verifier, made) == "expired"
