"""Addresses: one spelling for each, the same in Python and in the engine, whatever way they were written."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgefast.core.engine import address_in, canonical_address, is_private_address
from edgefast.netaddr import (
    ANY_NETWORK,
    RESERVED,
    is_in,
    is_private,
    parse_network,
    read_address,
    why_reserved,
)

pytestmark = pytest.mark.pure

texts = st.one_of(
    st.ip_addresses().map(str),
    st.ip_addresses(v=6).map(lambda one: one.exploded.upper()),
    st.ip_addresses(v=4).map("::ffff:{}".format),
    st.ip_addresses(v=4).map("::{}".format),
    st.ip_addresses(v=4).map(lambda one: f"::FFFF:{int(one) >> 16:x}:{int(one) & 65535:x}"),
    st.integers(0, 2**36).map(lambda one: str(ipaddress.IPv6Address(one))),
    st.text("0123456789abcdefF:.%/[] ", max_size=48),
)
networks = st.one_of(
    st.builds("{}/{}".format, st.ip_addresses(v=4), st.integers(0, 32)),
    st.builds("{}/{}".format, st.ip_addresses(v=6), st.integers(0, 128)),
    st.builds("::ffff:{}/{}".format, st.ip_addresses(v=4), st.integers(0, 128)),
)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::ffff:a00:1", "10.0.0.1"),
        ("0:0:0:0:0:FFFF:0A00:0001", "10.0.0.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("::10.0.0.1", "::a00:1"),  # IPv4-compatible is no IPv4 address
        ("::1:0", "::1:0"),
        ("64:ff9b::10.0.0.1", "64:ff9b::a00:1"),
        ("10.0.0.1", "10.0.0.1"),
        ("010.0.0.1", None),
        ("10.1", None),
        ("fe80::1%eth0", None),
        ("[::1]", None),
        ("10.0.0.1:80", None),
        (" 10.0.0.1", None),
        ("10.0.0.1\0", None),
        ("", None),
    ],
)
def test_one_spelling(text: str, spelled: str | None) -> None:
    found = read_address(text)
    assert (None if found is None else str(found)) == spelled
    assert canonical_address(text.encode()) == (None if spelled is None else spelled.encode())


@given(texts)
@example("::")
@example("0.0.0.0")
def test_the_engine_reads_what_python_reads(text: str) -> None:
    found = read_address(text)
    assert canonical_address(text.encode()) == (None if found is None else str(found).encode())
    assert is_private_address(text.encode()) == (found is not None and is_private(found))


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str), networks)
@example("10.0.0.1", "::ffff:10.0.0.0/104")
@example("::ffff:10.0.0.1", "10.0.0.0/8")
@example("10.0.0.1", "::/0")
@example("10.0.0.1", "::ffff:0:0/95")
@example("::1", "0.0.0.0/0")
def test_ranges_have_the_same_addresses(text: str, cidr: str) -> None:
    found = read_address(text)
    assert found is not None
    assert address_in(text.encode(), cidr) == is_in(found, parse_network(cidr))


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("::ffff:192.168.0.1", True),
        ("fd00::1", True),
        ("fd::1", False),  # 00fd::1
        ("fc::", False),
        ("172.31.255.255", True),
        ("172.32.0.0", False),
        ("::1", True),
        ("::2", False),
    ],
)
def test_private_networks(text: str, private: bool) -> None:
    found = read_address(text)
    assert found is not None and is_private(found) is private
    assert is_private_address(text.encode()) is private


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::1", "this host"),
        ("::", "this host"),
        ("0.0.0.0", "this host"),
        ("::127.0.0.1", "this host"),
        ("64:ff9b::127.0.0.1", "loopback, by NAT64"),
        ("64:ff9b::169.254.169.254", "link-local"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("fe80::1%eth0", "not an address"),
        ("localhost", "not an address"),
        ("10.0.0.1", ""),
        ("192.168.0.1", ""),
        ("128.0.0.0", ""),
        ("100.64.0.1", ""),
        ("fd00::1", ""),
        ("2001:db8::1", ""),
        ("64:ff9b::10.0.0.1", ""),
        ("64:ff9b::1:0:0", ""),
        ("64:ff9b:1::a9fe:a9fe", "NAT64"),
        ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "NAT64"),
        ("64:ff9b:2::1", ""),
        ("2002:a9fe:a9fe::1", "6to4"),
        ("2001:0:102:304::1", "Teredo"),
        ("2001:1::1", ""),
        ("2003::1", ""),
        *((f"64:ff9b::{text.split('/')[0]}", "NAT64") for text, _ in RESERVED if "." in text),
    ],
)
def test_addresses_that_are_never_backends(text: str, what: str) -> None:
    said = why_reserved(text, ())
    assert (what in said) if what else not said
    assert why_reserved(text, ANY_NETWORK) == ""


def test_an_administrator_allows_ranges_of_them() -> None:
    allowed = ("127.0.1.0/24", "fe80::/10", "::ffff:169.254.1.0/120")
    assert not any(why_reserved(one, allowed) for one in ("127.0.1.9", "fe80::1", "169.254.1.1"))
    assert all(why_reserved(one, allowed) for one in ("127.0.2.1", "::1", "169.254.169.254"))
