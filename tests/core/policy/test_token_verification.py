"""Tokens on their way: what is verified at once, what waits, for how long, and who is told."""

from __future__ import annotations

import pytest

from auth.jwt.issuer import NOW, jwk, key_set, provider, token
from core.policy.token_verifiers import URI, VerifierRig, remote
from edgefast.auth.jwt.key_set import KeySetError
from edgefast.core.policy.token_requirements import make_verifiers
from edgefast.core.policy.token_verification import BUDGET, PARKED, PATIENCE, THREADED
from edgefast.core.policy.tokenqueue import QUEUE, QUEUE_BYTES
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
    rig = VerifierRig()
    verifier = rig.verifier(LOCAL)
    made = token()
    assert verifier.look(made) is None
    question = rig.ask(verifier, made)
    assert question.outcome is not None and question.outcome.good
    known = verifier.look(bytes(bytearray(made)))
    assert known is question.outcome and known.claims is not None and known.claims["sub"] == "jane"
    rig.settle()
    assert rig.words == [] and rig.token_verifier.waiting == 0 and not verifier.jobs


def test_what_is_bad_is_bad_each_time() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(LOCAL)
    assert [rig.word(verifier, one) for one in (junk(1), junk(1), b"x", token(exp=1))] == [
        "signature",
        "signature",
        "malformed",
        "expired",
    ]
    assert len(rig.token_verifier.cache) == 0


def test_a_turn_has_a_budget() -> None:
    rig = VerifierRig(cost=FULL / 4)
    verifier = rig.verifier(LOCAL)
    said = [rig.word(verifier, junk(n)) for n in range(10)]
    assert said == ["signature"] * 4 + [None] * 6
    rig.turn()
    assert rig.words == ["signature"] * 4
    assert rig.word(verifier, junk(99)) is None, "behind those who wait"
    rig.turn()
    assert rig.words == ["signature"] * 7
    rig.turn()
    assert rig.word(verifier, junk(100)) == "signature"
    rig.settle()
    assert rig.word(verifier, token()) == ""


def test_the_queue_has_an_end() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    said = [rig.word(verifier, b"%d" % n) for n in range(QUEUE + 3)]
    assert said == ["malformed"] + [None] * QUEUE + ["busy"] * 2
    assert rig.settle() == QUEUE + 1
    assert rig.words == ["malformed"] * QUEUE and rig.token_verifier.waiting == 0


def test_and_so_have_its_bytes() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    said = [rig.word(verifier, b"%d" % n + b"x" * 16_000) for n in range(600)]
    assert said.count(None) == QUEUE_BYTES // 16_003 and said[-1] == "busy"
    rig.settle()
    assert rig.word(verifier, b"x") == "malformed"
    rig.settle()
    assert rig.word(verifier, token()) == ""


def test_one_verification_for_all_who_ask() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    rig.word(verifier, b"x")
    made = token()
    questions = [rig.ask(verifier, made) for _ in range(QUEUE + 1)]
    assert [one.outcome is None for one in questions] == [True] * QUEUE + [False]
    assert rig.token_verifier.waiting == 1
    questions[0].cancel()
    assert rig.settle() == 2
    assert rig.words == [""] * (QUEUE - 1)
    assert questions[0].outcome is None and questions[1].outcome is questions[2].outcome


def test_who_goes_is_not_called_and_costs_nothing() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    rig.word(verifier, b"x")
    one = rig.ask(verifier, token())
    one.cancel()
    one.cancel()
    assert not verifier.jobs
    other = rig.ask(verifier, token())
    rig.settle()
    assert rig.words == [""] and other.outcome is not None and one.outcome is None


def test_a_request_that_fails_takes_nobody_along() -> None:
    rig = VerifierRig(cost=FULL)
    verifier = rig.verifier(LOCAL)
    rig.word(verifier, b"x")

    def fails(_: object) -> None:
        raise RuntimeError("gone")

    verifier.submit(token(), fails)
    rig.ask(verifier, token())
    rig.ask(verifier, token(sub="john"))
    rig.settle()
    assert rig.words == ["", ""]


# --- on a thread ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alg", "kid"), [("ES384", "a"), ("ES512", "b")])
def test_slow_ones_are_verified_beside_the_loop(alg: str, kid: str) -> None:
    rig = VerifierRig()
    verifier = rig.verifier(SLOW)
    made = token(alg, header={"kid": kid})
    assert rig.word(verifier, made) is None
    assert rig.word(verifier, made) is None
    rig.land()
    assert rig.words == ["", ""] and rig.word(verifier, made) == ""
    assert rig.word(verifier, token(alg, 1, header={"kid": kid})) is None
    rig.land()
    assert rig.words[2:] == ["signature"]
    assert rig.word(verifier, token(alg, header={"kid": "c"})) == "kid", "nothing to verify"
    rig.settle()
    assert rig.token_verifier.waiting == 0
    rig.token_verifier.close()


def test_the_thread_has_a_few_before_it() -> None:
    rig = VerifierRig(cost=0.0)
    verifier = rig.verifier(SLOW)
    count = THREADED + 70
    for number in range(count):
        assert rig.word(verifier, token("ES384", header={"kid": "a"}, sub=f"{number}")) is None
    assert rig.token_verifier.waiting == count
    landed = 0
    while landed < count:
        rig.land()
        landed += 1
        rig.settle()
    assert rig.words == [""] * count and rig.token_verifier.waiting == 0
    rig.token_verifier.close()


def test_what_the_thread_says_is_not_believed_when_the_key_went_meanwhile() -> None:
    rig = VerifierRig()
    rig.token_verifier.remote.use((URI, "", ""), key_set(jwk("ES384", kid="a")))
    verifier = rig.verifier(remote())
    assert rig.word(verifier, token("ES384", header={"kid": "a"})) is None
    rig.token_verifier.remote.use((URI, "", ""), key_set(jwk("ES384", 1, kid="b")))
    rig.land()
    assert rig.words == [] and verifier.jobs
    rig.settle()
    assert rig.asked == [(URI, "", "")], "another look found that nobody knows the key"
    rig.wait(PATIENCE)
    assert rig.words == ["kid"]
    rig.token_verifier.close()


def test_who_goes_while_the_thread_works() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(SLOW)
    rig.ask(verifier, token("ES384", header={"kid": "a"})).cancel()
    rig.land()
    rig.settle()
    assert rig.words == [] and rig.token_verifier.waiting == 0
    rig.token_verifier.close()


# --- keys that are fetched ------------------------------------------------------------------------------------------

OLD, NEW = jwk("ES256", kid="old"), jwk("ES256", 1, kid="new")
FIRST, SECOND = token(header={"kid": "old"}), token(number=1, header={"kid": "new"})


def test_the_first_keys_are_waited_for() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(remote())
    assert rig.word(verifier, FIRST) is None
    assert rig.asked == [], "the agent fetches them anyway"
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    rig.settle()
    assert rig.words == [""] and rig.word(verifier, FIRST) == ""


def test_but_not_for_long() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(remote())
    assert rig.word(verifier, FIRST) is None
    rig.wait(PATIENCE - 0.1)
    assert rig.words == []
    rig.wait(0.2)
    assert rig.words == ["keys"] and rig.token_verifier.waiting == 0


def test_where_none_can_be_had_it_is_said_at_once() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(remote())
    question = rig.ask(verifier, FIRST)
    rig.token_verifier.remote.use((URI, "", ""), b"")
    rig.settle()
    assert rig.asked == [(URI, "", "")] and question.outcome is None
    rig.token_verifier.remote.use((URI, "", ""), b"")
    rig.settle()
    assert question.outcome is not None and question.outcome.status == 503
    assert rig.word(verifier, FIRST) == "keys"
    rig.wait(10)
    assert rig.word(verifier, FIRST) is None
    assert len(rig.asked) == 2


def test_a_key_that_nobody_knows_is_asked_for() -> None:
    rig = VerifierRig()
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    verifier = rig.verifier(remote())
    assert rig.word(verifier, FIRST) == ""
    assert rig.word(verifier, SECOND) is None
    assert rig.word(verifier, token(header={"kid": "who"})) is None
    assert rig.asked == [(URI, "", "")]
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD, NEW))
    rig.settle()
    assert sorted(rig.words) == ["", "kid"]
    assert rig.word(verifier, FIRST) == "" == rig.word(verifier, SECOND)
    assert rig.word(verifier, token(header={"kid": "who"})) == "kid"
    assert rig.asked == [(URI, "", "")], "seldom"
    rig.wait(10)
    assert rig.word(verifier, token(header={"kid": "who"})) is None
    assert rig.asked == [(URI, "", "")] * 2


def test_a_new_key_of_a_login_is_asked_for_at_once_and_once() -> None:
    rig = VerifierRig()
    source = (URI, "", "")
    rig.token_verifier.remote.use(source, key_set(OLD))
    (verifier,) = make_verifiers(rig.token_verifier, Jwt((remote(),)), own_tokens=True)
    for count in (1, 2):  # the second time within the seconds that tokens of clients wait
        unknown = token(header={"kid": f"k{count}"})
        assert rig.word(verifier, unknown) is None
        assert rig.asked == [source] * count
        rig.token_verifier.remote.use(source, key_set(OLD))
        rig.settle()
        assert rig.words == ["kid"] * count and rig.asked == [source] * count
    assert rig.word(verifier, SECOND) is None
    rig.token_verifier.remote.use(source, key_set(OLD, NEW))
    rig.settle()
    assert rig.words[-1] == ""


def test_rotation_without_a_refusal() -> None:
    """Tokens of the old key go on as long as it is published, those of the new one are good as soon as it is."""
    rig = VerifierRig()
    verifier = rig.verifier(remote())
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    steps = [((OLD,), FIRST), ((OLD, NEW), FIRST), ((OLD, NEW), SECOND), ((NEW,), SECOND)]
    for keys, made in steps:
        rig.token_verifier.remote.use((URI, "", ""), key_set(*keys))
        assert rig.word(verifier, made) == ""
        rig.settle()
        assert verifier.look(made) is not None
    assert verifier.look(FIRST) is None, "its key is gone, and what it proved"
    assert rig.word(verifier, FIRST) is None
    rig.wait(PATIENCE)
    assert rig.words == ["kid"]


def test_the_same_keys_again_change_nothing() -> None:
    rig = VerifierRig()
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    verifier = rig.verifier(remote())
    assert rig.word(verifier, FIRST) == ""
    known = verifier.look(FIRST)
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    rig.token_verifier.remote.use((URI, "", ""), b"no keys, by mistake")
    assert verifier.look(FIRST) is known


def test_keys_of_a_cluster_are_another_set() -> None:
    rig = VerifierRig()
    rig.token_verifier.remote.use((URI, "service/ns/idp/80", ""), key_set(OLD))
    rig.token_verifier.remote.use((URI, "", ""), key_set(NEW))
    verifier = rig.verifier(remote())
    assert rig.word(verifier, SECOND) == ""
    assert rig.word(verifier, FIRST) is None


def test_one_set_for_all_policies() -> None:
    rig = VerifierRig()
    one, other = rig.verifier(remote()), rig.verifier(remote(audiences=()))
    assert rig.word(one, FIRST) is None and rig.word(other, FIRST) is None
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    rig.settle()
    assert rig.words == ["", ""]
    rig.token_verifier.remote.forget((URI, "", ""))
    assert one.look(FIRST) is None
    assert rig.word(one, FIRST) is None
    rig.token_verifier.remote.forget(("https://unknown.example.com", "", ""))
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    rig.settle()
    assert rig.words == ["", "", ""], "a table names it again"
    assert rig.word(one, FIRST) == "" == rig.word(other, FIRST)


def test_sets_that_nobody_has_are_gone() -> None:
    rig = VerifierRig()
    rig.verifier(remote())
    assert len(rig.token_verifier.remote._sets) == 0
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    assert len(rig.token_verifier.remote._sets) == 1
    rig.token_verifier.remote.forget((URI, "", ""))
    assert len(rig.token_verifier.remote._sets) == 0


def test_strangers_do_not_wait_in_any_number() -> None:
    rig = VerifierRig(cost=0.0)
    verifier = rig.verifier(remote())
    said = [rig.word(verifier, token(header={"kid": f"k{n}"})) for n in range(PARKED + 2)]
    assert said == [None] * PARKED + ["keys"] * 2
    assert rig.token_verifier.waiting == PARKED
    local = rig.verifier(LOCAL)
    assert rig.word(local, token()) == "", "nobody else waits for that"
    rig.wait(PATIENCE)
    rig.settle()
    assert rig.words == ["keys"] * PARKED and rig.token_verifier.waiting == 0 and not verifier.jobs


def test_who_goes_while_keys_are_on_their_way() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(remote())
    question = rig.ask(verifier, FIRST)
    question.cancel()
    assert rig.token_verifier.waiting == 0 and not verifier.jobs
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    rig.wait(PATIENCE)
    rig.settle()
    assert rig.words == [] and question.outcome is None


def test_an_answer_that_never_comes_is_waited_for_by_few() -> None:
    rig = VerifierRig()
    rig.token_verifier.remote.use((URI, "", ""), key_set(OLD))
    verifier = rig.verifier(remote())
    assert rig.word(verifier, SECOND) is None
    rig.wait(PATIENCE)
    assert rig.words == ["kid"]
    rig.wait(10)
    assert rig.word(verifier, SECOND) is None
    assert rig.asked == [(URI, "", "")] * 2


# --- policies -------------------------------------------------------------------------------------------------------


def test_providers_that_look_elsewhere_have_a_verifier_of_their_own() -> None:
    rig = VerifierRig()
    cookie = CredentialExtractors(cookies=("token",))
    specs = (
        provider(jwk("ES256"), name="a", claim_headers=(("x-sub", "sub"),)),
        provider(jwk("ES256", 1), name="b", places=cookie, claim_headers=(("x-user", "sub"),)),
        provider(jwk("ES256", 2), name="c"),
    )
    head, other = make_verifiers(rig.token_verifier, Jwt(specs))
    assert (head.places, other.places) == (specs[0].places, cookie)
    assert (head.headers, other.headers) == ({"x-sub"}, {"x-user"})
    assert [rig.word(head, token(number=n)) for n in range(3)] == ["", "signature", ""]
    assert [rig.word(other, token(number=n)) for n in range(3)] == ["signature", "", "signature"]


def test_keys_that_are_none_are_refused() -> None:
    with pytest.raises(KeySetError):
        make_verifiers(VerifierRig().token_verifier, Jwt((JwtProvider("x", keys=b"?"),)))


def test_time_is_looked_at_each_time() -> None:
    rig = VerifierRig()
    verifier = rig.verifier(LOCAL)
    made = token(exp=NOW + 10, nbf=NOW + 61)
    assert rig.word(verifier, made) == "early"
    rig.wait(1)
    rig.settle()
    assert rig.word(verifier, made) == ""
    rig.wait(68.5)
    assert rig.word(verifier, made) == ""
    rig.wait(1)
    assert rig.word(verifier, made) == "expired"
