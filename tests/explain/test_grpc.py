"""Calls of gRPC: what settings of their port are told, over files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call

pytestmark = pytest.mark.pure

FILE = Path(__file__).parents[2] / "examples" / "grpc.yaml"
URL = "http://shop.example.com:8080/shop.v1.Cart/Add"
RETRY = "retried for UNAVAILABLE, at most 2 times (EdgeProxy spec.grpc.retry)"
WEB = "gRPC-Web is translated (EdgeProxy spec.grpc.web)"


def test_a_call_that_goes_to_a_backend() -> None:
    told = call("explain", "-f", str(FILE), URL.replace("http://", "grpc://")).out
    assert RETRY in told and WEB not in told
    seen = told.partition("sees")[2]
    assert "POST /shop.v1.Cart/Add HTTP/2\n" in seen and "te: trailers\n" in seen


def test_a_browser() -> None:
    kind = ("-H", "content-type: application/grpc-web-text+proto", "-H", "content-length: 8")
    told = call("explain", "-f", str(FILE), "POST", URL, *kind).out
    assert RETRY in told and WEB in told
    assert "content-type: application/grpc+proto" in told
    seen = told.partition("sees")[2]
    assert "POST /shop.v1.Cart/Add HTTP/2\n" in seen and "te: trailers\n" in seen
    assert "transfer-encoding" not in seen and "content-length: 8\n" not in seen


def test_others_are_told_nothing_of_it() -> None:
    told = call("explain", "-f", str(FILE), "POST", URL).out
    assert RETRY not in told and WEB not in told


def test_an_answer_of_the_proxy() -> None:
    told = call("explain", "-f", str(FILE), "grpc://shop.example.com:8080/shop.v1.Stock/List").out
    assert "grpc-status UNIMPLEMENTED" in told
