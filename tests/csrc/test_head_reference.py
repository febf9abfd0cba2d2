"""The head scan against the slow reference: same outcome for the same bytes, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csrc import heads, native, reference
from csrc.reference import Limits

pytestmark = pytest.mark.pure

MANY = settings(max_examples=500, deadline=None, derandomize=True, database=None)


@MANY
@given(st.data(), heads.requests(), heads.LIMITS)
def test_request(data: st.DataObject, head: bytes, limits: Limits) -> None:
    want = reference.scan_request(head, limits)
    assert native.scan(head, limits) == want
    assert native.scan(head, limits, cuts=data.draw(heads.cuts(head))) == want


@MANY
@given(st.data(), heads.responses(), heads.LIMITS, st.sampled_from([b"GET", b"HEAD", b"POST"]))
def test_response(data: st.DataObject, head: bytes, limits: Limits, method: bytes) -> None:
    want = reference.scan_response(head, limits, method)
    assert native.scan(head, limits, method) == want
    assert native.scan(head, limits, method, cuts=data.draw(heads.cuts(head))) == want


@settings(MANY, max_examples=200)
@given(st.binary(max_size=80), heads.LIMITS)
def test_any_bytes(junk: bytes, limits: Limits) -> None:
    assert native.scan(junk, limits) == reference.scan_request(junk, limits)
    assert native.scan(junk, limits, b"GET") == reference.scan_response(junk, limits, b"GET")


def test_strategies_reach_both_verdicts() -> None:
    """A strategy that makes only bad heads would prove little: count what it makes."""
    accepted: list[bool] = []

    @settings(MANY, max_examples=200)
    @given(heads.requests())
    def count(head: bytes) -> None:
        accepted.append(isinstance(reference.scan_request(head, Limits()), reference.Head))

    count()
    assert len(accepted) // 4 < sum(accepted) < len(accepted) * 3 // 4
