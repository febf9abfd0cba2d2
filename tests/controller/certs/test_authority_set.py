"""Ring: authorities change in steps, and at every step both ends trust what the other shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from controller.certs.authority_set import (
    AuthoritySet,
    Overlap,
    advance,
    announce,
    decode_authority_set,
    encode_authority_set,
    make_authority_set,
)
from controller.certs.issue import issue_client
from controller.certs.pair import signed_by

pytestmark = pytest.mark.pure

NOW = datetime(2026, 11, 21, tzinfo=UTC)
OVERLAP = Overlap()


def test_nothing_is_due_with_a_new_ring() -> None:
    ring = make_authority_set("x", NOW)
    assert advance(ring, "x", NOW, OVERLAP) is ring
    assert advance(ring, "x", NOW + timedelta(days=3 * 365), OVERLAP) is ring


def steps(ring: AuthoritySet, start: datetime, days: int) -> list[AuthoritySet]:
    """Return the ring after every change, looked at each ten minutes."""
    found = [ring]
    for tick in range(days * 144):
        changed = advance(found[-1], "x", start + timedelta(minutes=10 * tick), OVERLAP)
        if changed is not found[-1]:
            found.append(changed)
    return found


def test_an_old_authority_is_replaced_with_overlap() -> None:
    first = make_authority_set("x", NOW)
    start = NOW + timedelta(days=5 * 365 * 2 // 3)
    states = steps(first, start, 5)
    assert [(len(one.trusted), one.coming is not None) for one in states] == [
        (1, False),
        (2, True),
        (2, False),
        (1, False),
    ]
    announced, signing = states[1].since, states[2].since
    assert signing - announced >= OVERLAP.announced
    assert states[3].since - signing >= OVERLAP.retiring
    assert states[1].current is first.current
    assert states[2].current is not first.current
    for before, after in pairwise(states):
        # What was signed in one state is trusted by an end that is still there, or a step ahead.
        for signer, truster in ((before, before), (before, after), (after, before)):
            pair = issue_client(
                signer.current, controller_namespace="c", namespace="n", name="f", now=start
            )
            assert any(signed_by(pair.certificate, one) for one in truster.trusted)


def test_a_change_can_be_asked_for_and_only_one_is_under_way() -> None:
    ring = make_authority_set("x", NOW)
    one = announce(ring, "x", NOW)
    assert len(one.trusted) == 2 and one.current is ring.current
    assert announce(one, "x", NOW) is one
    two = advance(one, "x", NOW + OVERLAP.announced, OVERLAP)
    assert announce(two, "x", NOW) is two
    assert advance(one, "x", NOW + OVERLAP.announced - timedelta(seconds=1), OVERLAP) is one


def test_a_ring_is_read_back() -> None:
    ring = make_authority_set("x", NOW)
    for state in (ring, announce(ring, "x", NOW)):
        again = decode_authority_set(encode_authority_set(state))
        assert again.trusted == state.trusted and again.since == state.since
        assert again.current.certificate == state.current.certificate
        assert again.bundle == state.bundle
        assert (again.coming is None) == (state.coming is None)
    # An authority that somebody else made has no dates of ours.
    data = encode_authority_set(ring)
    plain = decode_authority_set({"tls.crt": data["tls.crt"], "tls.key": data["tls.key"]})
    assert plain.trusted == ring.trusted


@pytest.mark.parametrize(
    "change, said",
    [
        ({"tls.key": None}, "tls.key is missing"),
        ({"tls.key": "x"}, "PEM"),
        ({"ca.crt": "x"}, "PEM"),
        ({"since": "yesterday"}, "yesterday"),
        ({"since": "2026-11-21T00:00:00"}, "time zone"),
        ({"ca.crt": make_authority_set("y", NOW).bundle}, "does not contain"),
    ],
)
def test_what_is_no_ring(change: dict[str, str | None], said: str) -> None:
    data = {**encode_authority_set(make_authority_set("x", NOW)), **change}
    with pytest.raises(ValueError, match=said) as error:
        decode_authority_set({key: value for key, value in data.items() if value is not None})
    assert "PRIVATE" not in str(error.value)
