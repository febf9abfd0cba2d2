"""Requests as people write them: calls of gRPC by their URL."""

from __future__ import annotations

import pytest

from edgefast.explain.request_spec import RequestSpec, RequestSpecError, read_request_spec

pytestmark = pytest.mark.pure

CALL = (("content-type", "application/grpc"), ("te", "trailers"))


def test_a_call_is_a_post_that_says_so() -> None:
    asked = read_request_spec("GET", "grpc://shop.test:8080/shop.v1.Cart/Add")
    assert asked == RequestSpec(
        method="POST", scheme="http", port=8080, host="shop.test:8080", target="/shop.v1.Cart/Add", headers=CALL
    )  # fmt: skip


def test_a_call_over_tls_and_fields_of_its_own() -> None:
    asked = read_request_spec(
        "GET", "grpcs://shop.test/a.B/C", ["Content-Type: application/grpc+proto"]
    )
    assert (asked.scheme, asked.port, asked.host, asked.sni) == (
        "https", 443, "shop.test", "shop.test",
    )  # fmt: skip
    assert asked.headers == (("Content-Type", "application/grpc+proto"), CALL[1])


def test_http10_and_no_host() -> None:
    """As `curl -0 -H Host:` sends it; the URL still names the port."""
    asked = read_request_spec("GET", "http://shop.test:8080/a", ["Host:", "x-a: 1"], http10=True)
    assert asked.head() == b"GET /a HTTP/1.0\r\nx-a: 1\r\n\r\n"
    assert (asked.host, asked.port) == ("shop.test:8080", 8080)
    asked = read_request_spec("GET", "http://shop.test/a", http10=True)
    assert asked.head() == b"GET /a HTTP/1.0\r\nHost: shop.test\r\n\r\n"


def test_a_name_with_a_dot_at_its_end() -> None:
    """A server reads the TLS name without it; Host goes as it is written, and the proxy drops the dot."""
    asked = read_request_spec("GET", "https://Shop.test./")
    assert (asked.host, asked.name(), asked.sni) == ("Shop.test.", "shop.test", "shop.test")
    assert read_request_spec("GET", "tls://shop.test.", sni=None).sni == "shop.test"
    for name in ("shop..test", ".shop.test", "shop.test..", "."):
        with pytest.raises(RequestSpecError, match="TLS server name"):
            read_request_spec("GET", "https://shop.test/", sni=name)
