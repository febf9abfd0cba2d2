"""What each operator of an access log line gives, whatever way a request ends."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import Any

import pytest

from core.apart import addresses_asked, apart
from core.backend import Call, make_response, say
from core.certificates import Site
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.logs import json_log, serve, text_log
from core.world import World
from edgefast import ir
from edgefast.core.cells import HANDSHAKES_DONE


async def test_headers_of_the_request(world: World) -> None:
    log = text_log(
        "%REQ(X-A)%|%REQ(x-a?x-b)%|%REQ(X-B?X-A)%|%REQ(X-C?:AUTHORITY)%|%REQ(X-A):3%|%REQ(X-FORWARDED-PROTO)%|"
        "%REQ(:SCHEME)%|%REQ(X-LONG)%|%REQ(X-LONG):1000%|%REQ(X-FORWARDED-FOR)%|%STREAM_ID%|%REQ(X-REQUEST-ID)%|"
        "%REQ(X-REAL-IP?X-FORWARDED-FOR)%"
    )
    _, client = await serve(world, log)
    headers = [
        ("X-a", "first"),
        ("x-A", "second"),
        ("x-long", "l" * 2000),
        ("x-forwarded-for", "10.9.9.9"),
    ]
    await client.get(host="h.test", headers=headers)
    values = world.texts()[0].split("|")
    assert values[:7] == ["first", "first", "first", "h.test", "fir", "http", "http"]
    assert values[7:10] == ["l" * 512, "l" * 1000, "10.9.9.9,127.0.0.1"]
    assert values[12] == "10.9.9.9,127.0.0.1"
    assert values[10] == values[11] and re.fullmatch(r"[0-9a-f-]{36}", values[10])


async def test_headers_of_the_answer_are_those_that_clients_get(world: World) -> None:
    filtered = ir.HeaderOps(set=(("x-set", "by the filter"),), remove=("x-gone",))
    log = text_log(
        "%RESP(X-A)%|%RESP(X-SET)%|%RESP(X-GONE)%|%RESP(SERVER)%|%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%|%RESP(:STATUS)%"
    )
    backend = await world.backend(
        lambda call: make_response(b"x-fake: body", headers=(("x-a", "one"), ("x-gone", "1")))
    )
    rule = make_rule(response_headers=filtered)
    fleet = make_fleet(make_listener(log=log), rule, make_cluster(backend.port))
    client = await world.client_of(fleet)
    await client.get()
    values = world.texts()[0].split("|")
    assert values[:4] == ["one", "by the filter", "-", "edgefast"]
    assert values[4].isdigit() and values[5] == "200"


async def test_headers_of_the_proxys_own_answers(world: World) -> None:
    rule = ir.Rule(route="ns/web", index=0, redirect=ir.Redirect(hostname="other.test"))
    log = text_log(
        "%RESPONSE_CODE% %RESP(LOCATION)% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %UPSTREAM_HOST%"
    )
    client = await world.client_of(make_fleet(make_listener(log=log), rule))
    await client.get("/x")
    assert world.texts() == ["302 http://other.test:8080/x direct_response - -"]


ENDS: dict[str, tuple[Any, str]] = {
    "no route": (None, "404 NR NoRouteFound route_not_found -"),
    "no endpoint": ("empty", "503 UH NoHealthyUpstream no_healthy_upstream -"),
    "refused": (
        "refused",
        "503 UF UpstreamConnectionFailure upstream_reset_before_response_started{connection_failure} connection_failure",
    ),
    "hung up": (
        "close",
        "502 UC UpstreamConnectionTermination upstream_reset_before_response_started{connection_termination} -",
    ),
    "broken": (
        b"SSH-2.0\r\n\r\n",
        "502 UPE UpstreamProtocolError upstream_reset_before_response_started{protocol_error} -",
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_flags_and_details(world: World, end: str) -> None:
    how, expected = ENDS[end]
    log = text_log(
        "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_FLAGS_LONG% %RESPONSE_CODE_DETAILS% %UPSTREAM_TRANSPORT_FAILURE_REASON%"
    )
    backend = await world.backend(
        (lambda call: call.link.close()) if how == "close" else (lambda call: how)
    )
    cluster = make_cluster(
        *{"empty": (), "refused": (world.refusing_port(),)}.get(str(how), (backend.port,))
    )
    host = make_host(("/only", make_rule())) if how is None else make_host(make_rule())
    client = await world.client_of(make_fleet(make_listener(log=log), host, cluster))
    await client.get()
    assert world.texts() == [expected]


async def test_timeouts_and_invalid_rules(world: World) -> None:
    log = text_log("%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%")
    backend = await world.backend()
    rules = (
        ("/slow", make_rule(timeouts=ir.Timeouts(request=30))),
        ("/rule", make_rule(status=500)),
    )
    fleet = make_fleet(
        make_listener(log=log, body_size=3), make_host(*rules), make_cluster(backend.port)
    )
    client = await world.client_of(fleet)
    await client.get("/slow")
    await client.get("/rule")
    await client.ask(make_request("/slow", method="POST", body=b"1234"))
    client = await world.client(await world.listen())
    await client.get("/%zz")
    assert world.texts() == [
        "504 UT response_timeout",
        "500 NC invalid_configuration",
        "413 - request_payload_too_large",
        "400 DPE path_normalization_failed",
    ]


async def test_a_client_that_hangs_up(world: World) -> None:
    backend = await world.backend()
    log = text_log(
        "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DOWNSTREAM_LOCAL_PORT%"
    )
    port = await world.serve(make_fleet(make_listener(log=log), make_cluster(backend.port)))
    client = await world.client(port)
    await client.send(make_request())
    await backend.call()
    client.close()
    await world.until(lambda: world.engine.active == 0)
    assert world.texts() == [f"0 DC downstream_remote_disconnect {port}"]


async def test_addresses(world: World) -> None:
    names = (
        "DOWNSTREAM_REMOTE_ADDRESS", "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", "DOWNSTREAM_REMOTE_PORT",
        "DOWNSTREAM_DIRECT_REMOTE_ADDRESS", "DOWNSTREAM_LOCAL_ADDRESS", "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
        "DOWNSTREAM_LOCAL_PORT", "UPSTREAM_REMOTE_ADDRESS", "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", "UPSTREAM_REMOTE_PORT",
        "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", "UPSTREAM_LOCAL_PORT", "UPSTREAM_LOCAL_ADDRESS",
    )  # fmt: skip
    log = json_log(**{name: f"%{name}%" for name in names})
    trust = ir.ClientAddress(
        trusted_hops=1, proxy_protocol="optional", proxy_senders=("127.0.0.0/8",)
    )
    backend = await world.backend(say("x"))
    listener = make_listener(log=log, client_address=trust)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    client = await world.client(port)
    await client.get()
    await client.get(headers=[("x-forwarded-for", "2001:db8::9")])
    await (await world.client(port)).ask(b"PROXY TCP6 2001:db8::1 ::1 4711 2\r\n" + make_request())
    plain, told, preamble = world.lines()
    own = plain["DOWNSTREAM_REMOTE_PORT"]
    assert own > 0
    assert (
        plain["DOWNSTREAM_REMOTE_ADDRESS"]
        == f"127.0.0.1:{own}"
        == plain["DOWNSTREAM_DIRECT_REMOTE_ADDRESS"]
    )
    assert plain["DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT"] == "127.0.0.1"
    assert plain["DOWNSTREAM_LOCAL_ADDRESS"] == f"127.0.0.1:{port}"
    assert (plain["DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT"], plain["DOWNSTREAM_LOCAL_PORT"]) == (
        "127.0.0.1",
        port,
    )
    assert plain["UPSTREAM_REMOTE_ADDRESS"] == f"127.0.0.1:{backend.port}"
    assert (plain["UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT"], plain["UPSTREAM_REMOTE_PORT"]) == (
        "127.0.0.1",
        backend.port,
    )
    assert plain["UPSTREAM_LOCAL_ADDRESS"] == f"127.0.0.1:{plain['UPSTREAM_LOCAL_PORT']}"
    assert told["DOWNSTREAM_REMOTE_ADDRESS"] == "[2001:db8::9]:0"
    assert told["DOWNSTREAM_DIRECT_REMOTE_ADDRESS"] == f"127.0.0.1:{own}"
    assert preamble["DOWNSTREAM_REMOTE_ADDRESS"] == "[2001:db8::1]:4711"


async def test_a_socket_of_both_families_has_ipv4_clients(world: World) -> None:
    """Its kernel calls them ::ffff:127.0.0.1; headers, limits and logs call them what they are."""
    log = text_log("%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT% %DOWNSTREAM_LOCAL_ADDRESS%")
    heads: list[bytes] = []

    def answer(call: Call) -> bytes:
        heads.append(call.message.raw)
        return make_response(b"")

    backend = await world.backend(answer)
    world.apply(make_fleet(make_listener(log=log), make_cluster(backend.port)))
    both = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=16)
    port = await world.listen(sock=both)
    assert (await (await world.client(port)).get()).status == 200
    assert world.texts() == [f"127.0.0.1 127.0.0.1:{port}"]
    assert b"x-forwarded-for: 127.0.0.1\r\n" in heads[0]
    assert b"x-edge-internal: true\r\n" in heads[0]


@apart(calls=True)
async def test_the_kernel_is_asked_once_for_each_connection_that_lines_need(world: World) -> None:
    """Lines about the client ask nothing of a try; lines about our end of a backend's connection ask it once."""
    closing = False
    backend = await world.backend(
        lambda call: make_response(b"x", headers=(("connection", "close"),) if closing else ())
    )
    listener = make_listener(log=text_log("%DURATION%"))
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))

    async def asked(template: str, requests: int) -> int:
        """Over one connection of a client, whose own is not counted."""
        listener = make_listener(log=text_log(template))
        world.apply(make_fleet(listener, make_cluster(backend.port)))
        client = await world.client(port)
        await client.get()
        before = addresses_asked()
        for _ in range(requests):
            await client.get()
        return addresses_asked() - before

    of_clients = (
        "%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_PORT% %DOWNSTREAM_LOCAL_PORT%"
    )
    of_backends = "%UPSTREAM_LOCAL_ADDRESS% %UPSTREAM_LOCAL_PORT%"
    assert await asked(of_clients, 5) == await asked("%UPSTREAM_HOST%", 5) == 0
    assert await asked(of_backends, 5) == 0  # the connection is the same
    closing = True
    least = await asked("%DURATION%", 5)  # what the event loop itself asks
    assert await asked(of_clients, 5) == await asked("%UPSTREAM_HOST%", 5) == least
    assert await asked(of_backends, 5) == least + 5


async def test_unix_sockets_have_no_port(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = str(tmp_path_factory.mktemp("u") / "s")
    backend = await world.backend(say("x"))
    await backend.start_unix(path)
    cluster = ir.Cluster(name=CLUSTER, endpoints=(ir.Endpoint(address=path),))
    log = text_log(
        "%UPSTREAM_HOST% %UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %UPSTREAM_REMOTE_PORT% %UPSTREAM_LOCAL_ADDRESS%"
    )
    client = await world.client_of(make_fleet(make_listener(log=log), cluster))
    await client.get()
    assert world.texts() == [f"unix:{path} {path} - -"]


async def test_names_and_constants(world: World) -> None:
    log = text_log(
        "%ROUTE_NAME% %UPSTREAM_CLUSTER% %UPSTREAM_CLUSTER_RAW% %HOSTNAME% %UPSTREAM_PROTOCOL% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %REQUESTED_SERVER_NAME%"
    )
    _, client = await serve(world, log)
    await client.get()
    host = os.uname().nodename
    assert world.texts() == [f"httproute/ns/web/rule/0 {CLUSTER} {CLUSTER} {host} HTTP/1.1 1 -"]


async def test_times_and_durations(world: World) -> None:
    log = json_log(
        start="%START_TIME(%s%3f)%",
        emit="%EMIT_TIME(%s%6f)%",
        date="%START_TIME(%Y/%m/%dT%H:%M:%S%z %Z %f %%)%",
        whole="%DURATION%",
        head="%RESPONSE_DURATION%",
        rest="%RESPONSE_TX_DURATION%",
    )
    backend, client = await world.pair(None, make_listener(log=log))
    await client.send(make_request())
    call = await backend.call()
    begin = time.monotonic()  # not the loop's: its turn began before the request did
    await world.until(lambda: time.monotonic() > begin + 0.05)
    call.reply()
    await client.response()
    (line,) = world.lines()
    took = int(line["emit"]) - 1000 * int(line["start"])
    assert 50_000 <= took < 50_000_000
    assert 50 <= line["head"] <= line["whole"] and line["rest"] <= line["whole"]
    assert abs(line["whole"] * 1000 - took) <= 2000
    assert re.fullmatch(r"\d{4}/\d\d/\d\dT\d\d:\d\d:\d\d\+0000 UTC \d{9} %", line["date"])
    assert line["date"].split(" ")[2][:3] == line["start"][-3:]


async def test_a_tls_client(world: World) -> None:
    certificates = Site("a.test")
    log = text_log(
        "%REQUESTED_SERVER_NAME% %REQ(:SCHEME)% %REQ(X-FORWARDED-PROTO)% "
        "%DOWNSTREAM_REMOTE_PORT% %DOWNSTREAM_LOCAL_ADDRESS%"
    )
    backend = await world.backend(say("x"))
    listener = make_listener(log=log, protocol="HTTPS")
    world.apply(make_fleet(listener, make_cluster(backend.port)))
    port = await world.listen(choose=certificates.choose)
    client = await world.tls_client(port, certificates.client(), "A.test")
    await client.get(host="a.test")
    (line,) = world.texts()
    name, scheme, proto, remote, local = line.split(" ")
    assert (name, scheme, proto, local) == ("a.test", "https", "https", f"127.0.0.1:{port}")
    assert int(remote) > 1023


TLS_FACTS = json_log(
    version="%DOWNSTREAM_TLS_VERSION%",
    cipher="%DOWNSTREAM_TLS_CIPHER%",
    group="%DOWNSTREAM_TLS_GROUP%",
    resumed="%DOWNSTREAM_TLS_RESUMED%",
    all="<%DOWNSTREAM_TLS_VERSION% %DOWNSTREAM_TLS_RESUMED%>",
)  # of requests: tests/proxy/tls/test_facts.py


async def test_tls_of_a_message_that_is_no_request(world: World) -> None:
    certificates = Site("a.test")
    world.apply(make_fleet(make_listener(log=TLS_FACTS, protocol="HTTPS")))
    port = await world.listen(choose=certificates.choose)
    client = await world.tls_client(port, certificates.client(), "a.test")
    await client.send(b"what is this\r\n\r\n")
    assert (await client.response()).status == 400
    (line,) = world.lines()
    assert (line["version"], line["resumed"]) == ("TLSv1.3", False)


async def test_a_plain_connection_has_no_tls(world: World) -> None:
    _, client = await serve(world, TLS_FACTS)
    await client.get()
    (line,) = world.lines()
    assert line == dict.fromkeys(("version", "cipher", "group", "resumed")) | {"all": "<- ->"}
    assert not any(world.counters[f"handshakes_done_{name}"] for name in HANDSHAKES_DONE)
