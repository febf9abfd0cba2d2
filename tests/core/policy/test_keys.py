"""Keys of clients: where they are looked for, who gets in, what the backend, the log and spans get of them."""

from __future__ import annotations

import pytest

from core.backend import Call, make_response
from core.client import make_request
from core.fleets import encode, make_cluster
from core.policy.authenticators import KEYS, make_keys, prove
from core.policy.authorized import AUTH, make_auth
from core.policy.policies import NAME, access
from core.traces import spans_since
from core.world import World
from edgefast import ir
from edgefast.table.shards import make_resource

CELLS = "security/ns/p\tapiKeyAuth"


async def test_who_has_a_key_is_known(world: World) -> None:
    route = await prove(world, make_keys(forward_header="x-client"))
    client = await route.client()
    answer = await client.ask(make_request(headers=[("X-Key", "k-alice"), ("x-client", "root")]))
    assert answer.body == b"behind"
    assert route.seen[0].values(b"x-client") == [b"alice"]
    assert route.seen[0].value(b"x-key") == b"k-alice"
    for headers in ([], [("x-key", "k-eve")], [("x-key", "")], [("x-keys", "k-alice")]):
        refused = await client.ask(make_request(headers=headers))
        assert (refused.status, refused.body) == (401, b"")
        assert refused.value("www-authenticate") == 'ApiKey realm="gateway"'
    assert len(route.seen) == 1
    assert world.counters.policy(CELLS) == {"allowed": 1, "denied": 4}
    lines = world.lines()
    assert [one.get("user") for one in lines] == ["alice", None, None, None, None]
    assert [(one["flags"], one.get("policy")) for one in lines[1:]] == [("DENY", KEYS)] * 4
    assert [one["policy_rule"] for one in lines[1:]] == ["missing", "wrong", "wrong", "missing"]


@pytest.mark.parametrize(
    ("place", "path", "headers", "passes"),
    [
        ("header:authorization", "/", [("authorization", "Bearer k-bob")], True),
        ("header:authorization", "/", [("authorization", "bearer  k-bob")], True),
        ("header:authorization", "/", [("authorization", "k-bob")], False),
        ("cookie:key", "/", [("cookie", "a=1; key=k-bob; b=2")], True),
        ("cookie:key", "/", [("cookie", 'key="k-bob"')], True),
        ("cookie:key", "/", [("cookie", "Key=k-bob")], False),
        ("cookie:key", "/?key=k-bob", [], False),
        ("param:key", "/?a=1&key=k-bob", [], True),
        ("param:key", "/?%6bey=k%2dbob", [], True),
        ("param:key", "/?key=k-bob&key=k-bob", [], True),
        ("param:key", "/?key=k-bob&key=k-alice", [], False),
        ("param:key", "/?KEY=k-bob", [], False),
        ("param:key", "/?key", [], False),
    ],
)
async def test_places(
    world: World, place: str, path: str, headers: list[tuple[str, str]], passes: bool
) -> None:
    route = await prove(world, make_keys(place))
    client = await route.client()
    answer = await client.ask(make_request(path, headers=headers))
    assert answer.status == (200 if passes else 401)


async def test_keys_that_differ_are_none(world: World) -> None:
    route = await prove(world, make_keys("header:x-key", "param:key", "cookie:key"))
    client = await route.client()
    both = [("x-key", "k-alice"), ("cookie", "key=k-alice")]
    assert (await client.ask(make_request("/?key=k-alice", headers=both))).status == 200
    assert (await client.ask(make_request("/?key=k-bob", headers=both))).status == 401
    assert (
        await client.ask(make_request(headers=[("x-key", "k-alice"), ("x-key", "k-bob")]))
    ).status == 401
    assert world.lines()[-1]["policy_rule"] == "several"


async def test_sanitize_leaves_the_backend_nothing(world: World) -> None:
    unit = make_keys("header:x-key", "param:key", "cookie:key", sanitize=True)
    route = await prove(world, unit, underscores="Allow")
    client = await route.client()
    sent = [
        ("x-key", "k-alice"),
        ("X_Key", "k-alice"),
        ("cookie", "a=1; key=k-alice"),
        ("x-b", "2"),
        ("cookie", "b=2"),
    ]
    for path, want in [
        ("/p?x=1&key=k-alice&y=%2f", b"/p?x=1&y=%2f"),
        ("/p?key=k-alice", b"/p"),
        ("/p?z", b"/p?z"),
    ]:
        answer = await client.ask(make_request(path, headers=sent, method="POST", body=b"body"))
        assert answer.body == b"behind"
        seen = route.seen[-1]
        assert b"k-alice" not in seen.raw and seen.target == want
        assert seen.body == b"body" and seen.values(b"cookie") == [b"a=1; b=2"]
        assert seen.value(b"x-b") == b"2"


async def test_trailers_bring_no_name_back(world: World) -> None:
    route = await prove(world, make_keys(forward_header="x-client", sanitize=True))
    client = await route.client()
    head = "POST / HTTP/1.1\r\nhost: test\r\nx-key: k-bob\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.send(
        head.encode() + b"1\r\na\r\n0\r\nX-Client: root\r\nx-key: k-bob\r\nx-t: 1\r\n\r\n"
    )
    assert (await client.response()).status == 200
    assert route.seen[0].trailers == ((b"x-t", b"1"),)


async def test_no_log_line_shows_a_key(world: World) -> None:
    program = ir.AccessLog(
        text=(
            ir.LogPiece(operator="path"),
            ir.LogPiece(text=" "),
            ir.LogPiece(operator="REQ", text="x-key"),
            ir.LogPiece(text=" "),
            ir.LogPiece(operator="REQ", text="cookie"),
            ir.LogPiece(text=" "),
            ir.LogPiece(operator="user"),
        ),
    )
    unit = make_keys("header:x-key", "param:key", "cookie:key")
    route = await prove(world, unit, log=program)
    client = await route.client()
    sent = [("x-key", "k-bob"), ("cookie", "key=k-bob; a=1")]
    assert (await client.ask(make_request("/a?b=1&key=k-bob&c=2", headers=sent))).status == 200
    assert (await client.ask(make_request("/a?key=wrong1"))).status == 401
    for line in world.texts():
        assert "k-bob" not in line and "wrong1" not in line
    assert "/a?b=1&key=*****&c=2" in world.texts()[0]
    assert "bob" in world.texts()[0]


@pytest.mark.parametrize("how", ["refused", "too large", "broken"])
async def test_no_log_line_shows_one_of_who_is_answered_before(world: World, how: str) -> None:
    unit = make_keys("header:x-key", "param:key", "cookie:key")
    others = {
        "refused": (access(allow=False),),
        "broken": (ir.PolicyUnit(name=NAME, status=500, reason="a mistake"),),
    }.get(how, ())
    route = await prove(world, *others, unit, body_size=3)
    client = await route.client()
    sent = [("x-key", "k-bob"), ("cookie", "key=k-bob; a=1")]
    body = b"long" if how == "too large" else None
    asked = make_request("/a?b=1&key=k-bob", headers=sent, method="PUT", body=body)
    status = (await client.ask(asked)).status
    assert status == {"refused": 403, "too large": 413, "broken": 500}[how]
    assert world.lines()[0]["path"] == "/a?b=1&key=*****"


LOCATED = ir.AccessLog(
    text=(
        ir.LogPiece(operator="path"),
        ir.LogPiece(text=" "),
        ir.LogPiece(operator="REQ", text="x-key"),
        ir.LogPiece(text=" "),
        ir.LogPiece(operator="RESP", text="location"),
    ),
)


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/a%2Fb?b=1&key=k-bob", "test", 307),  # escaped slashes
        ("/a%00?b=1&key=k-bob", "test", 400),
        ("/a?b=1&key=k-bob", "other", 404),  # no listener has this host
        (
            "/a?b=1&key=k-bob",
            "test",
            500,
        ),  # the unit itself is broken ("/a?b=1&key=k-bob", "test", 503),  # the rule has an error, and no guard
    ],
)
async def test_no_log_line_shows_a_key_that_comes_to_no_rule(
    world: World, path: str, host: str, status: int
) -> None:
    unit = make_keys("header:x-key", "param:key", "cookie:key")
    if status == 500:
        assert unit.api_key is not None
        unit = ir.PolicyUnit(name=KEYS, status=500, places=(unit.api_key.places,))
    rule = {"policies": (), "status": 503} if status == 503 else None
    route = await prove(world, unit, rule=rule, log=LOCATED, hostname="test")
    client = await route.client()
    answer = await client.ask(make_request(path, host=host, headers=[("x-key", "k-bob")]))
    assert answer.status == status
    (line,) = world.texts()
    assert "k-bob" not in line and "key=*****" in line and "b=1" in line


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("b=1&%6bey=k-bob&key&key=x&KEY=y", "b=1&%6bey=*****&key&key=*&KEY=y"),
        ("b=1&" * 63 + "key=k-bob", "b=1&" * 63 + "key=*****"),
        ("b=1&" * 64 + "key=k-bob", "*" * 265),
        ("b=1&" * 64 + "kex=k-bob", "*" * 265),
    ],
    ids=["few", "as many as may be", "more", "more without a key"],
)
async def test_a_query_of_many_parts_that_comes_to_no_rule_is_covered_as_a_whole(
    world: World, query: str, shown: str
) -> None:
    unit = make_keys("header:x-key", "param:key", "cookie:key")
    route = await prove(world, unit, log=LOCATED, hostname="test")
    client = await route.client()
    headers = [("x-key", "k-bob"), ("cookie", query.replace("&", "; "))]
    sent = make_request("/a?" + query, host="other", headers=headers)
    assert (await client.ask(sent)).status == 404
    (line,) = world.texts()
    assert line.split(" ")[:2] == ["/a?" + shown, "*****"]


async def test_places_are_forgotten_with_their_policy(world: World) -> None:
    route = await prove(world, make_keys("param:key"))
    gone, other = "/a%2Fb?key=k-bob&other=x", make_keys("param:other")
    client = await route.client()
    shown = ["key=*****&other=x", "key=k-bob&other=*", "key=k-bob&other=x"]
    for at, change in enumerate(
        ((), ([make_resource("policy", KEYS, encode(other))], []), ([], [("policy", KEYS)]))
    ):
        if change:
            assert world.send(*change, f"v{at}") == []
        assert (await client.ask(make_request(gone))).status == 307
        assert world.lines()[-1]["path"] == f"/a%2Fb?{shown[at]}"


async def test_no_span_shows_a_key(world: World) -> None:
    tracing = ir.Tracing(endpoint="http://127.0.0.1:4318")
    route = await prove(world, make_keys("param:key"), tracing=tracing)
    client = await route.client()
    assert (await client.ask(make_request("/a?key=k-bob"))).status == 200
    assert spans_since(world, 0)
    assert b"k-bob" not in b"".join(world.spans)


async def test_services_are_asked_behind_keys(world: World) -> None:
    questions: list[Call] = []

    def answer(call: Call) -> bytes:
        questions.append(call)
        return make_response(headers=(("x-role", "admin"),))

    service = await world.backend(answer)
    asked = make_auth(headers=("x-client", "x-key"), to_backend=("x-role", "x-client"))
    route = await prove(
        world,
        make_keys(forward_header="x-client", sanitize=True),
        rule={"ext_auth": asked},
        more=(make_cluster(service.port, name=AUTH),),
    )
    client = await route.client()
    assert (await client.ask(make_request(headers=[("x-key", "none")]))).status == 401
    assert service.links == []
    sent = [("x-key", "k-bob"), ("x-client", "root"), ("x-role", "root")]
    assert (await client.ask(make_request(headers=sent))).status == 200
    (question,) = questions
    assert question.message.values(b"x-client") == [b"bob"]
    assert question.message.values(b"x-key") == []
    assert route.seen[0].values(b"x-client") == [b"bob"]
    assert route.seen[0].values(b"x-role") == [b"admin"]


async def test_a_body_for_a_service_is_read_behind_the_key(world: World) -> None:
    service = await world.backend()
    route = await prove(
        world,
        make_keys(),
        rule={"ext_auth": make_auth(body=1000)},
        more=(make_cluster(service.port, name=AUTH),),
    )
    client = await route.client()
    sent = make_request(headers=[("x-key", "k-bob")], method="PUT", body=b"b" * 1000)
    await client.send(sent[:-1])
    await world.turns()
    assert service.links == []
    await client.send(sent[-1:])
    question = await service.call()
    assert question.message.body == b"b" * 1000
    question.reply()
    assert (await client.response()).status == 200
    assert route.seen[0].body == b"b" * 1000
    other = await route.client()
    large = make_request(headers=[("x-key", "k-bob")], method="PUT", body=b"b" * 1001)
    assert (await other.ask(large)).status == 413
