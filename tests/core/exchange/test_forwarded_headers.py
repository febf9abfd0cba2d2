"""EdgeProxy spec.headers at a backend: headers about the client, forged ones, X-Forwarded-For, X-Request-ID, trailers. The bytes of all
combinations: tests/explain/test_engine."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Call, make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir
from origin.message import Message

NAMES = (
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-scheme",
    "x-original-forwarded-for",
    "x-original-forwarded-host",
    "x-original-uri",
    "x-real-ip",
    "x-scheme",
)
FORGED = [(name, "forged") for name in NAMES]
UNTRUSTED = ir.ClientAddress()
TRUSTED = ir.ClientAddress(trusted_cidrs=("127.0.0.0/8",))


async def ask(
    world: World,
    headers: list[tuple[str, str]],
    *,
    forwarded: dict[str, Any],
    client: ir.ClientAddress = UNTRUSTED,
    ops: ir.HeaderOps | None = None,
    raw: bytes = b"",
    underscores: str = "Reject",
) -> Message:
    """Send one request and return it as the backend gets it."""
    seen: list[Message] = []

    def answer(call: Call) -> bytes:
        seen.append(call.message)
        return make_response(b"ok")

    backend = await world.backend(answer)
    listener = make_listener(
        forwarded=ir.ForwardedHeaders(**forwarded), client_address=client, underscores=underscores
    )
    host = make_host(make_rule(request_headers=ops))
    port = await world.serve(make_fleet(listener, host, make_cluster(backend.port)))
    peer = await world.client(port)
    assert (await peer.ask(raw or make_request(path="/a//b?c", headers=headers))).status == 200
    return seen[-1]


def values(message: Message) -> dict[str, list[str]]:
    return {
        name: [one[1].decode() for one in message.headers if one[0].lower() == name.encode()]
        for name in NAMES
    }


async def test_headers_about_the_client(world: World) -> None:
    message = await ask(world, [], forwarded={"names": NAMES})
    found = values(message)
    assert found.pop("x-forwarded-port") != ["80"]  # the port of the listener
    assert found == {
        "x-forwarded-host": ["test"],
        "x-forwarded-scheme": ["http"],
        "x-original-forwarded-for": [],
        "x-original-forwarded-host": [],
        "x-original-uri": ["/a//b?c"],
        "x-real-ip": ["127.0.0.1"],
        "x-scheme": ["http"],
    }


async def test_forged_headers_never_reach_a_backend(world: World) -> None:
    message = await ask(world, [*FORGED, *FORGED], forwarded={"names": NAMES})
    found = values(message)
    originals = found.pop("x-original-forwarded-host")
    assert originals == ["forged, forged"]
    assert all(len(one) <= 1 and one != ["forged"] for one in found.values())


async def test_a_trusted_peer_sets_host_and_port(world: World) -> None:
    headers = [*FORGED, ("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-Proto", "https")]
    message = await ask(world, headers, forwarded={"names": NAMES}, client=TRUSTED)
    found = values(message)
    assert found["x-forwarded-host"] == ["forged"]
    assert found["x-forwarded-port"] == ["forged"]
    assert found["x-real-ip"] == ["192.0.2.9"]
    assert found["x-scheme"] == ["https"]
    assert found["x-original-forwarded-for"] == ["192.0.2.9"]


async def test_the_port_is_that_of_a_scheme_of_another_proxy(world: World) -> None:
    headers = [("X-Forwarded-Proto", "https")]
    message = await ask(world, headers, forwarded={"names": NAMES}, client=TRUSTED)
    assert values(message)["x-forwarded-port"] == ["443"]


@pytest.mark.parametrize("client", [UNTRUSTED, TRUSTED], ids=("untrusted", "trusted"))
async def test_underscores_do_not_hide_a_forged_header(
    world: World, client: ir.ClientAddress
) -> None:
    """CGI and its successors take "_" for "-"."""
    forged = [(name.replace("-", "_"), "forged") for name in NAMES]
    forged += [("X-Real_IP", "forged"), ("x_other", "kept")]
    forwarded = {"names": NAMES}
    message = await ask(world, forged, forwarded=forwarded, client=client, underscores="Allow")
    assert [name for name, value in message.headers if value == b"forged"] == []
    assert message.value(b"x_other") == b"kept"


async def test_a_filter_has_priority(world: World) -> None:
    ops = ir.HeaderOps(set=(("X-Real-IP", "filter"),), remove=("x-scheme",))
    found = values(await ask(world, FORGED, forwarded={"names": NAMES}, ops=ops))
    assert found["x-real-ip"] == ["filter"]
    assert found["x-scheme"] == []


@pytest.mark.parametrize(
    ("overwrites", "expected"), [(False, b"10.0.0.9,127.0.0.1"), (True, b"127.0.0.1")]
)
async def test_forwarded_for(world: World, overwrites: bool, expected: bytes) -> None:
    headers = [("X-Forwarded-For", "10.0.0.9")]
    message = await ask(world, headers, forwarded={"overwrite_for": overwrites})
    assert message.value(b"x-forwarded-for") == expected


@pytest.mark.parametrize(
    ("mode", "internal", "kept"),
    [
        ("internal", True, True),
        ("internal", False, False),
        ("preserve", False, True),
        ("generate", True, False),
    ],
)
async def test_request_id(world: World, mode: str, internal: bool, kept: bool) -> None:
    headers = [("X-Request-ID", "mine")]
    headers += [] if internal else [("X-Forwarded-For", "192.0.2.9")]
    message = await ask(world, headers, forwarded={"request_id": mode})
    assert (message.value(b"x-request-id") == b"mine") is kept


async def test_no_trailer_has_one_of_the_names(world: World) -> None:
    raw = (
        b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
        b"0\r\nx-scheme: forged\r\nx-more: kept\r\n\r\n"
    )
    message = await ask(world, [], forwarded={"names": NAMES}, raw=raw)
    assert [name.lower() for name, _ in message.trailers] == [b"x-more"]
