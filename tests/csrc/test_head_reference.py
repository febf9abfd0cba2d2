"""The head scan against the slow reference: same outcome for the same bytes, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csrc import heads, native, reference
from csrc.reference import Limits

pytestmark = pytest.mark.pure

MANY = settings(max_examples=300, deadline=None, derandomize=True, database=None)


@MANY
@given(st.data(), heads.requests(), heads.LIMITS)
def test_request(data: st.DataObject, head: bytes, limits: Limits) -> None:
    want = reference.scan_request(head, limits)
    assert native.scan(head, limits) == want
    assert native.scan(head, limits, cuts=data.draw(heads.cuts(head))) == want


@MANY
@given(heads.requests(), st.booleans())
def test_host_without_its_dot(head: bytes, raw: bool) -> None:
    limits = Limits(underscore="allow", raw=raw)
    want = reference.scan_request(head, limits)
    if not isinstance(want, reference.Head):
        return
    now = native.drop_host_dot(head, limits)
    assert len(now) == len(head)
    again = native.scan(now, limits)
    assert isinstance(again, reference.Head)
    assert (again.host, again.port, again.length) == (want.host, want.port, want.length)
    assert "host_dot" not in again.notes
    if "host_dot" not in want.notes:
        assert now == head


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


GROUPS = st.lists(st.sampled_from("0 1 ffff FFFF 12345 g 1.2.3.4 256.1.1.1 01.2.3.4 1.2.3".split()))
ADDRESSES = st.one_of(
    st.ip_addresses(v=6).map(str),
    st.builds(
        lambda before, between, after: ":".join(before) + between + ":".join(after),
        GROUPS.filter(lambda groups: len(groups) < 9),
        st.sampled_from(["::", "::", ":", "", ":::", "::0::"]),
        GROUPS.filter(lambda groups: len(groups) < 9),
    ),
    st.integers(0, 2**128 - 1).map(
        lambda n: ":".join(f"{n >> s & 65535:x}" for s in range(0, 128, 16))
    ),
    st.text("0a:.", max_size=12),
)


@MANY
@given(ADDRESSES)
def test_ip_literal(address: str) -> None:
    head = f"GET / HTTP/1.1\r\nHost: [{address}]\r\n\r\n".encode()
    assert native.scan(head, Limits()) == reference.scan_request(head, Limits())


def test_strategies_reach_both_verdicts() -> None:
    """A strategy that makes only bad heads would prove little: count what it makes."""
    accepted: list[bool] = []

    @settings(MANY, max_examples=200)
    @given(heads.requests())
    def count(head: bytes) -> None:
        accepted.append(isinstance(reference.scan_request(head, Limits()), reference.Head))

    count()
    assert len(accepted) // 10 < sum(accepted) < len(accepted) * 9 // 10
