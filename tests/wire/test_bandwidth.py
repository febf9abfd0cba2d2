"""A bandwidth limit on the wire: bytes against time, with wide bounds. tests/core/exchange/test_bandwidth.py has the rules."""

from __future__ import annotations

import time

import pytest

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.test_ingress import PREFIX, arguments, ingress

pytestmark = pytest.mark.wire

_SIZE = 500 * 1024


def answer(message: Message) -> bytes:
    return response(b"x" * _SIZE)


def test_limit_rate_of_an_ingress() -> None:
    """100 KiB at once, 100 KiB of the first second, and 100 KiB in each of three seconds."""
    port = free_port()
    slow, free = ingress("slow"), ingress("free")
    rates = {"limit-rate": "100", "limit-rate-after": "100"}
    slow["metadata"]["annotations"] |= {PREFIX + name: value for name, value in rates.items()}
    with RecordingOrigin(answer) as origin:
        objects = [slow, free, *make.service("web", [("127.0.0.1", origin.port)])]
        with Gateway(objects, arguments=arguments(port)), Client(("127.0.0.1", port)) as client:
            assert len(client.request(host="free.test").body) == _SIZE
            began = time.monotonic()
            assert len(client.request(host="slow.test").body) == _SIZE
            assert time.monotonic() - began > 2.5
