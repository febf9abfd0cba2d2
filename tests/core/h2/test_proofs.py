"""HTTP/2 clients that prove who they are: 401 in both words, passwords on the thread, streams that are taken back at once."""

from __future__ import annotations

from h2.events import ResponseReceived, StreamEnded

from core.h2.test_both import begin, events
from core.policy.authenticators import basic, make_keys, make_passwords, prove, slow
from core.policy.passwords_held import Held
from core.policy.test_tokens import bearer, token, tokens
from core.world import World
from edgefast import ir

GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
CALL = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/a.B/C"),
    (":authority", "test"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]
HTTP2 = ir.Http2Settings(enabled=True)


async def test_keys(world: World) -> None:
    route = await prove(world, make_keys(forward_header="x-client", sanitize=True), http2=HTTP2)
    client, frames = await begin(world, route.port)
    frames.send_headers(1, [*GET, ("x-key", "k-bob"), ("x-client", "root")], end_stream=True)
    frames.send_headers(3, [*GET, ("x-key", "k-eve")], end_stream=True)
    frames.send_headers(5, CALL, end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded, 3)
    heads = {one.stream_id: dict(one.headers) for one in found if isinstance(one, ResponseReceived)}
    assert heads[1][":status"] == "200"
    assert heads[3][":status"] == "401" and heads[3]["www-authenticate"].startswith("ApiKey")
    assert (heads[5][":status"], heads[5]["grpc-status"]) == ("200", "16")
    (seen,) = route.seen
    assert seen.values(b"x-client") == [b"bob"] and seen.values(b"x-key") == []


async def test_a_stream_that_is_taken_back_at_once_costs_no_hash(world: World) -> None:
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b")), http2=HTTP2)
    client, frames = await begin(world, route.port)
    for number in (1, 3, 5):
        frames.send_headers(number, [*GET, basic("bob", "guess")], end_stream=True)
        frames.reset_stream(number, 8)
    frames.send_headers(7, [*GET, basic("bob", "b")], end_stream=True)
    await client.send(frames.data_to_send())
    held.let(1)
    found = await events(client, frames, StreamEnded)
    heads = {one.stream_id: dict(one.headers) for one in found if isinstance(one, ResponseReceived)}
    assert {number: head[":status"] for number, head in heads.items()} == {7: "200"}
    assert held.begun == 1


async def test_a_token_is_judged_before_the_body_behind_it(world: World) -> None:
    """Also of one read: who has no business here is not told how large bodies may be."""
    route = await prove(world, tokens(), http2=HTTP2, body_size=10)
    client, frames = await begin(world, route.port)
    post = [(":method", "POST"), *GET[1:]]
    sent = {1: token(aud="other"), 3: token()}
    for number, text in sent.items():
        frames.send_headers(number, [*post, *bearer(text)])
        frames.send_data(number, b"x" * 100, end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded, 2)
    heads = {one.stream_id: dict(one.headers) for one in found if isinstance(one, ResponseReceived)}
    assert {number: head[":status"] for number, head in heads.items()} == {1: "403", 3: "413"}
