"""What a GRPCRoute says happens to real calls: who takes them, what is changed on them, and what is answered for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from wire.grpc.backend import CEILING, GrpcBackend, open_channel, refused
from wire.harness import objects as make
from wire.harness.site import Site

LIMIT = {"type": "ExtensionRef", "extensionRef": {
    "group": make.EDGE, "kind": "RateLimitFilter", "name": "limit"}}  # fmt: skip


def headers(kind: str, **what: Any) -> make.Object:
    """A filter that modifies headers."""
    return {"type": f"{kind}HeaderModifier", f"{kind.lower()}HeaderModifier": what}


def value(name: str, text: str) -> dict[str, str]:
    return {"name": name, "value": text}


RULES = [
    make.rule("one", matches=[make.method("test.One")]),
    make.rule("two", matches=[make.method("test.Two")]),
    make.rule(
        "two",
        matches=[make.method("test.One", "Echo", headers=[value("my-version", "2")])],
    ),
    make.rule(
        make.backend_ref("one", 3),
        make.backend_ref("two", 1),
        matches=[make.method("test.Weighed")],
    ),
    make.rule("empty", matches=[make.method("test.Empty")]),
    make.rule("one", matches=[make.method("test.Limited")], filters=[LIMIT]),
    make.rule(
        "one",
        matches=[make.method("test.Changed")],
        filters=[
            headers(
                "Request",
                set=[value("my-set", "by the route")],
                add=[value("my-add", "more")],
                remove=["my-remove"],
            ),
            headers("Response", set=[value("backend", "somebody")], remove=["my-set"]),
        ],
    ),
    make.rule(
        "one",
        matches=[make.method("test.Mirrored")],
        filters=[
            {
                "type": "RequestMirror",
                "requestMirror": {"backendRef": make.backend_ref("two")},
            }
        ],
    ),
]


@pytest.fixture(scope="module")
def backends() -> Iterator[tuple[GrpcBackend, GrpcBackend]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(GrpcBackend("one")),
            stack.enter_context(GrpcBackend("two")),
        )


@pytest.fixture(scope="module")
def channel(backends: tuple[GrpcBackend, GrpcBackend]) -> Iterator[grpc.Channel]:
    limited = {"type": "Global", "global": {"rules": [{"limit": {"requests": 1, "unit": "Hour"}}]}}
    objects = [
        make.grpc_route("calls", RULES),
        *make.service("empty", []),
        *(one for back in backends
          for one in make.service(back.name, [("127.0.0.1", back.port)])),
        {"apiVersion": f"{make.EDGE}/v1alpha1", "kind": "RateLimitFilter",
         "metadata": {"name": "limit", "namespace": "default"}, "spec": limited},
    ]  # fmt: skip
    with Site(objects) as site, open_channel(site.port) as opened:
        yield opened


def echo(
    channel: grpc.Channel, service: str, metadata: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """The metadata of an answer."""
    call = channel.unary_unary(f"/{service}/Echo").with_call(
        b"", metadata=tuple(metadata), timeout=CEILING
    )[1]
    return dict(call.initial_metadata())


def test_services_of_one_route(channel: grpc.Channel) -> None:
    assert echo(channel, "test.One")["backend"] == "one"
    assert echo(channel, "test.Two")["backend"] == "two"


def test_headers_choose(channel: grpc.Channel) -> None:
    assert echo(channel, "test.One", [("my-version", "2")])["backend"] == "two"
    assert echo(channel, "test.One", [("my-version", "3")])["backend"] == "one"


def test_weights(channel: grpc.Channel) -> None:
    found = Counter(echo(channel, "test.Weighed")["backend"] for _ in range(16))
    assert found == {"one": 12, "two": 4}


@pytest.mark.parametrize(
    ("method", "code", "said"),
    [
        ("/test.Nobody/Echo", grpc.StatusCode.UNIMPLEMENTED, "no route takes this call"),
        ("/test.one/Echo", grpc.StatusCode.UNIMPLEMENTED, "no route takes this call"),
        ("/test.Empty/Echo", grpc.StatusCode.UNAVAILABLE, "no healthy endpoint"),
    ],
)
def test_refused(channel: grpc.Channel, method: str, code: grpc.StatusCode, said: str) -> None:
    error = refused(lambda: channel.unary_unary(method)(b"", timeout=CEILING))
    assert (error.code(), error.details()) == (code, said)


def test_a_limit(channel: grpc.Channel) -> None:
    assert echo(channel, "test.Limited")["backend"] == "one"
    error = refused(lambda: channel.unary_unary("/test.Limited/Echo")(b"", timeout=CEILING))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert ("x-edge-ratelimited", "true") in [*error.initial_metadata(), *error.trailing_metadata()]


def test_headers_are_modified(
    channel: grpc.Channel, backends: tuple[GrpcBackend, GrpcBackend]
) -> None:
    found = echo(
        channel, "test.Changed", [("my-set", "mine"), ("my-remove", "me"), ("my-add", "one")]
    )
    method, seen = backends[0].calls[-1]
    assert method == "/test.Changed/Echo"
    assert seen["my-set"] == "by the route" and "my-remove" not in seen
    assert found["backend"] == "somebody" and "my-set" not in found


def test_mirror(channel: grpc.Channel, backends: tuple[GrpcBackend, GrpcBackend]) -> None:
    """The copy is a call of HTTP/2, too; nobody hears of its answer."""
    one, two = backends
    two.reached.clear()
    assert echo(channel, "test.Mirrored")["backend"] == "one"
    assert one.calls[-1][0] == "/test.Mirrored/Echo"
    assert two.reached.wait(CEILING)
    assert two.calls[-1][0] == "/test.Mirrored/Echo"
