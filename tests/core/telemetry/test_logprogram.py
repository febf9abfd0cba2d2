"""Lines of an access log as the configuration asks for them: their shapes, whose they are, and nothing that breaks out."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest

from core.backend import make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_listener, make_rule
from core.logs import json_log, serve, text_log
from core.world import World
from edgefast import ir
from edgefast.api.edge.edgeproxy import LogField
from edgefast.translate.edgeproxy.log_format_parser import OPERATORS

#: The line that Envoy Gateway writes when nothing else is said, as people paste it.
PASTED = """\
[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% \
%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% \
"%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" 100%%
"""


def test_the_engine_knows_the_operators_of_templates(world: World) -> None:
    brackets = {"": "", "request": "(a?b):9", "response": "(a)", "time": "(%s)", "grpc": "(NUMBER)"}
    for name, kind in OPERATORS.items():
        assert (
            world.try_apply(make_fleet(make_listener(log=text_log(f"%{name}{brackets[kind]}%"))))
            == []
        )
    fleet = make_fleet(make_listener(log=ir.AccessLog(fields=get_args(LogField))))
    assert world.try_apply(fleet) == []


def test_an_operator_of_another_release_refuses_the_listener(world: World) -> None:
    log = ir.AccessLog(text=(ir.LogPiece(operator="MOON_PHASE"),))
    ((kind, name, error),) = world.try_apply(make_fleet(make_listener(log=log)))
    assert (kind, name) == ("listener", "ns/gw/http")
    assert "MOON_PHASE" in error


async def test_a_pasted_line(world: World) -> None:
    backend, client = await serve(world, text_log(PASTED))
    await client.get("/a?b=1", headers=[("User-Agent", 'x "y"')], host="T.test")
    (line,) = world.texts()
    found = re.fullmatch(
        r'\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\] "GET /a\?b=1 HTTP/1\.1" 200 - via_upstream 0 5 \d+ '
        r'"127\.0\.0\.1" "x \\"y\\"" "([0-9a-f-]{36})" "T\.test" "127\.0\.0\.1:(\d+)" 100%',
        line,
    )
    assert found, line
    assert int(found[3]) == backend.port


async def test_json_members_keep_their_types(world: World) -> None:
    log = json_log(
        code="%RESPONSE_CODE%",
        duration="%DURATION%",
        nothing="%REQ(X-NOT-SENT)%",
        never="%CONNECTION_TERMINATION_DETAILS%",
        mixed='took "%DURATION%" %REQ(X-NOT-SENT)% 5%%',
        plain="pl\u00e4in",
        empty="",
        agent="%REQ(User-Agent)%",
        **{'"odd\\': "%PROTOCOL%"},
    )
    _, client = await serve(world, log)
    await client.get(headers=[("user-agent", 'a"b\\c\xe9')])
    (line,) = world.lines()
    assert list(line) == [
        "code",
        "duration",
        "nothing",
        "never",
        "mixed",
        "plain",
        "empty",
        "agent",
        '"odd\\',
    ]
    assert line["code"] == 200
    assert isinstance(line["duration"], int)
    assert line["nothing"] is None and line["never"] is None
    assert re.fullmatch(r'took "\d+" - 5%', line["mixed"])
    assert (line["plain"], line["empty"], line['"odd\\']) == ("pl\u00e4in", "", "HTTP/1.1")
    assert line["agent"] == 'a"b\\c\xe9'


async def test_chosen_fields_are_those_of_the_default_line(world: World) -> None:
    backend, client = await serve(world, ir.AccessLog())
    trust = ir.ClientAddress(trusted_hops=1)
    headers = [("x-forwarded-for", "203.0.113.9"), ("user-agent", "t")]

    def fleet(log: ir.AccessLog) -> ir.Fleet:
        rule = make_rule(name='r"1')
        return make_fleet(
            make_listener(log=log, client_address=trust), rule, make_cluster(backend.port)
        )

    for log in (ir.AccessLog(), ir.AccessLog(fields=get_args(LogField))):
        world.apply(fleet(log))
        await client.get("/x?y", headers=headers)
    default, chosen = world.lines()
    assert list(default) == list(chosen)
    moving = ("time", "duration_ms", "upstream_ms", "request_id")
    for name in set(default) - set(moving):
        assert default[name] == chosen[name], name
    for name in moving:
        assert type(default[name]) is type(chosen[name])
    world.apply(fleet(ir.AccessLog(fields=("status", "limit", "path"))))
    await client.get("/x?y")
    assert world.lines()[-1] == {"status": 200, "path": "/x?y"}
    world.apply(fleet(ir.AccessLog(fields=("limit",))))
    await client.get("/x?y")
    assert world.lines()[-1] == {}


async def test_a_message_that_is_no_request(world: World) -> None:
    log = text_log(
        "%START_TIME(%Y)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %REQ(:METHOD)% %DURATION% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"
    )
    _, client = await serve(world, log)
    await client.send(b"\x00\x01\xff\r\n\r\n")
    assert (await client.response()).status == 400
    (line,) = world.texts()
    year, code, flags, details, method, took, address = line.split(" ")
    assert (code, flags, method, took, address) == ("400", "DPE", "-", "-", "127.0.0.1")
    assert year.isdigit() and len(details) > 3 and details.isprintable()


async def test_chosen_fields_of_a_message_that_is_no_request(world: World) -> None:
    _, client = await serve(
        world, ir.AccessLog(fields=("status", "flags", "path", "reason", "client"))
    )
    await client.send(b"\x00\x01\xff\r\n\r\n")
    await client.response()
    (line,) = world.lines()
    assert list(line) == ["status", "flags", "reason", "client"]
    assert line["flags"] == "PE"


async def test_requests_of_no_listener_are_logged_by_the_first_that_logs(world: World) -> None:
    logs = {
        "a": ir.AccessLog(off=True),
        "b": text_log("b %REQ(:AUTHORITY)% %REQ(X-A)%"),
        "c": text_log("c"),
    }
    listeners = [
        make_listener(f"ns/gw/{name}", hostname=f"{name}.test", log=log)
        for name, log in logs.items()
    ]
    client = await world.client_of(make_fleet(*listeners))
    for host in ("a.test", "b.test", "c.test", "d.test"):
        await client.get(host=host, headers=[("x-a", "1")])
    assert world.texts() == ["b b.test 1", "c", "b d.test 1"]


async def test_filters_and_sampling_hold_for_what_reaches_no_listener(world: World) -> None:
    for log, count in (
        (ir.AccessLog(min_status=500), 0),
        (ir.AccessLog(sampling=0.0), 0),
        (ir.AccessLog(min_status=400), 2),
    ):
        world.apply(make_fleet(make_listener(hostname="a.test", log=log)))
        port = await world.listen()
        await (await world.client(port)).get(host="other.test")
        client = await world.client(port)
        await client.send(b"\x00\r\n\r\n")
        await client.response()
        assert len(world.lines()) == count, log


@pytest.mark.parametrize(
    ("bounds", "paths"),
    [
        ((500, 0), ["/500"]),
        ((0, 40), ["/slow"]),
        ((500, 40), ["/500", "/slow"]),
        ((500, 60_000), ["/500"]),
        ((599, 60_000), []),
    ],
)
async def test_either_bound_lets_a_request_pass(
    world: World, bounds: tuple[int, int], paths: list[str]
) -> None:
    backend = await world.backend()
    log = text_log("%REQ(:PATH)%", min_status=bounds[0], min_duration=bounds[1])
    client = await world.client_of(make_fleet(make_listener(log=log), make_cluster(backend.port)))
    for path in ("/200", "/500", "/slow"):
        await client.send(make_request(path))
        call = await backend.call()
        if path == "/slow":
            begin = world.loop.time()
            await world.until(lambda begin=begin: world.loop.time() > begin + 0.05)
        call.reply(status=500 if path == "/500" else 200)
        await client.response()
    lines = world.texts()
    assert lines == paths or (
        bounds[1] == 40 and set(paths) <= set(lines)
    )  # a busy machine is slow more often


LEGAL = bytes([9, *range(32, 127), *range(128, 256)])


@pytest.mark.parametrize("shape", ["text", "json"])
async def test_every_byte_of_a_client_is_escaped(world: World, shape: str) -> None:
    template = (
        'begin "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%RESP(X-ECHO)%" "%REQ(X-EVIL)%" end'
    )
    log = (
        text_log(template)
        if shape == "text"
        else json_log(agent="%REQ(USER-AGENT)%", line=template)
    )
    _, client = await world.pair(
        lambda call: make_response(
            headers=[("x-echo", (call.message.value(b"user-agent") or b"").decode("latin-1"))]
        ),
        make_listener(log=log),
    )
    parts = [LEGAL[i : i + 60].strip(b" \t") for i in range(0, len(LEGAL), 60)]
    for part in parts:
        head = b"GET / HTTP/1.1\r\nhost: test\r\nuser-agent: %b\r\nx-request-id: %b\r\nx-evil: %b\r\n\r\n"
        assert (
            await client.ask(head % (part, part, b'" end"} \\"\\n{"status":200}'))
        ).status == 200
    world.engine.log_flush()
    text = b"".join(world.batches)
    assert text.isascii() and text.count(b"\n") == len(parts)
    assert all(32 <= byte < 127 or byte == 10 for byte in text)
    for part, line in zip(parts, text.decode().splitlines(), strict=True):
        if shape == "json":
            record = json.loads(line)
            assert list(record) == ["agent", "line"]
            assert record["agent"] == part.decode("latin-1")
            continue
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        assert len(strings) == 4, line
        assert line.startswith('begin "') and line.endswith('" end')
        back = re.sub(
            rb"\\(x[0-9a-f]{2}|.)",
            lambda m: bytes.fromhex(m[1][1:].decode()) if len(m[1]) == 3 else m[1],
            strings[0].encode(),
        )
        assert back == part


async def test_a_program_that_comes_while_a_request_is_under_way(world: World) -> None:
    """What was not kept when the request came is absent; nothing is made up, nothing breaks."""
    backend = await world.backend()
    parts = (make_rule(), make_cluster(backend.port))
    client = await world.client_of(make_fleet(make_listener(), *parts))
    await client.send(make_request("/late", headers=[("x-a", "1")]))
    call = await backend.call()
    log = text_log(
        "%REQ(:PATH)% %REQ(X-A)% %DOWNSTREAM_LOCAL_ADDRESS% %UPSTREAM_LOCAL_ADDRESS% %RESP(X-B)%"
    )
    world.apply(make_fleet(make_listener(log=log), *parts))
    call.reply(headers=(("x-b", "2"),))
    await client.response()
    assert world.texts() == ["/late - - - 2"]
