"""Addresses of options: what is taken, and what is said when not."""

from __future__ import annotations

import pytest

from edgefast.httpd.address import Address, check_ip, parse_address

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:19000", Address("127.0.0.1", 19000)),
        ("localhost:1", Address("127.0.0.1", 1)),
        ("[::1]:80", Address("::1", 80)),
        ("[::]:0", Address("::", 0)),
        (":9000", Address("::", 9000)),
        ("9000", Address("127.0.0.1", 9000)),
        ("off", None),
    ],
)
def test_forms(text: str, address: Address | None) -> None:
    assert parse_address(text) == address
    if address is not None:
        assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("127.0.0.1:65536", "port"),
        ("127.0.0.1:", "port"),
        ("127.0.0.1:http", "port"),
        ("127.0.0.1:\u0663", "port"),
        ("::1:80", r"\[ADDRESS\]"),
        ("[::1:80", r"\[ADDRESS\]"),
        ("example.com:80", "not an IPv4 or IPv6 address"),
        ("", "port"),
    ],
)
def test_refusals_say_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_address(text)


def test_bind_addresses_are_canonical() -> None:
    assert check_ip("0:0:0:0:0:0:0:1") == "::1"
    with pytest.raises(ValueError, match="localhost"):
        check_ip("localhost")
