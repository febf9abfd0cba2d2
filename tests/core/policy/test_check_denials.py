"""What a service of gRPC denies: to clients of HTTP, and to those of gRPC."""

from __future__ import annotations

import pytest

from core.policy.called import called
from core.policy.checkmessages import denying
from core.world import World

GRPC = [("content-type", "application/grpc"), ("te", "trailers")]


async def test_a_denial_is_the_clients(world: World) -> None:
    lines = (
        ("X-Why", "y"),
        ("content-type", "text/html"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("content-length", "999"),
        ("connection", "close"),
        ("x-edge-internal", "true"),
        ("bad name", "x"),
        ("x-split", "a\r\nx-evil: 1"),
    )
    route = await called(world, denying(*lines, status=401, body="<p>go"), unit=True)
    for _ in range(2):
        answer = await route.ask()
        assert (answer.status, answer.body, answer.value("x-why")) == (401, b"<p>go", "y")
        assert answer.value("content-type") == "text/html"
        assert [v for n, v in answer.headers if n == "set-cookie"] == ["a=1", "b=2"]
        for name in ("connection", "x-edge-internal", "x-split", "x-evil", "bad name"):
            assert answer.value(name) is None, name
    assert route.seen == [] and world.counters["auth_denied"] == 2
    (line, _) = world.lines()
    assert (line["flags"], line["bytes_sent"], "backend" in line) == ("DENY", 5, False)
    assert line["policy"] == "security/ns/policy#extAuth"


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (denying(), 403),
        (denying(code=16), 403),
        (denying(code=-1), 403),
        (denying(code=0, status=401), 401),  # an answer for the client is none for the backend
        (denying(status=0), 403),
        (denying(status=99), 403),
        (denying(status=101), 403),
        (denying(status=200), 200),
        (denying(status=302), 302),
        (denying(status=503), 503),
        (denying(status=600), 403),
        (denying(("x", "y"), status=404, body="z" * 70_000), 404),
        (denying(*[("x", "y" * 1000)] * 100, status=401), 401),
        (denying(*[("x", "y")] * 200, status=401), 401),  # its lines are left out
    ],
)
@pytest.mark.parametrize("fail_open", [False, True])
async def test_denials(world: World, message: bytes, status: int, fail_open: bool) -> None:
    route = await called(world, message, fail_open=fail_open, status_on_error=500)
    answer = await route.ask()
    assert answer.status == status and route.seen == []
    assert len(answer.body) <= 65_536
    assert (world.counters["auth_denied"], world.counters["auth_errors"]) == (1, 0)


@pytest.mark.parametrize(
    ("message", "status", "text"),
    [
        (denying(), 7, "an authorization service denied the call"),
        (denying(status=404), 7, "an authorization service denied the call"),
        (denying(status=429, body="too much"), 7, "too much"),
        (denying(status=401, body="who? 100%\n"), 16, "who? 100%25"),
        (denying(status=302, body="é"), 7, "%C3%A9"),
        (denying(status=503), 14, "an authorization service denied the call"),
        (denying(("content-type", "text/html"), status=401, body="<p>"), 16, None),
        (denying(("grpc-status", "9"), ("grpc-message", "later"), status=404), 9, "later"),
        (denying(("grpc-status", "0"), status=403), 7, None),  # a denial is no OK
        (denying(("grpc-status", "99"), status=401), 16, None),
    ],
)
async def test_a_client_of_grpc_is_denied(
    world: World, message: bytes, status: int, text: str | None
) -> None:
    route = await called(world, message)
    answer = await route.ask("/s/m", method="POST", headers=GRPC, body=b"")
    assert (answer.status, answer.body, answer.value("content-type")) == (
        *(200, b"", "application/grpc"),
    )
    assert answer.value("grpc-status") == str(status)
    assert text is None or answer.value("grpc-message") == text
    assert len([1 for name, _ in answer.headers if name == "grpc-status"]) == 1
    assert route.seen == []
