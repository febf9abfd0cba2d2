"""Authorisation by a server that is a process of its own, in front of a real proxy: what reaches the backend, byte by byte.

The proxy has its table from the disk (the last good one), as a policy of files would have made it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from edgefast import ir
from edgefast.irpolicy import AuthBackend, ExtAuth, PolicyUnit
from edgefast.proxy.tables.lastgood import LastGood
from edgefast.table import compile_fleet
from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from proxy.command import Process
from wire.harness.client import Client, build_request
from wire.harness.ports import free_port

SERVER = Path(__file__).parents[1] / "core" / "guard" / "authserver.py"
UNIT = "security/default/policy#extAuth"

Front = tuple[int, RecordingOrigin]


def answer(message: Message) -> bytes:
    return response(b"behind", head=message.method == b"HEAD")


def fleet_of(port: int, backend: int, auth: int) -> ir.Fleet:
    """One route, whose policy asks the server."""
    spec = ExtAuth(
        backends=(AuthBackend("auth"),), to_backend=("x-user", "x-roles"), headers=("cookie",)
    )
    fleet = make_fleet(
        make_listener(port=port, underscores="Allow"),
        make_host(make_rule("web", policies=(UNIT,))),
        make_cluster(backend, name="web"),
        make_cluster(auth, name="auth"),
    )
    return ir.Fleet(
        name=fleet.name,
        listeners=fleet.listeners,
        virtual_hosts=fleet.virtual_hosts,
        clusters=fleet.clusters,
        policies=(PolicyUnit(name=UNIT, ext_auth=spec),),
    )


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder = tmp_path_factory.mktemp("auth")
    state = folder / "state"
    state.mkdir(mode=0o700)
    port = free_port()
    command = [sys.executable, str(SERVER)]
    with (
        RecordingOrigin(answer) as origin,
        subprocess.Popen(command, stdout=subprocess.PIPE) as server,
    ):
        try:
            assert server.stdout is not None
            auth = int(server.stdout.readline())
            assert LastGood(state).save(compile_fleet(fleet_of(port, origin.port, auth)))
            none = folder / "none.yaml"
            none.write_bytes(b"{[")
            run = Process(folder, "-f", str(none), "--workers", "2", "--state-dir", str(state))
            try:
                run.wait_ready()
                yield port, origin
            finally:
                assert run.stop() == 0
        finally:
            server.kill()


GOOD = ("authorization", "Bearer good-me")


def test_who_is_known_enters(front: Front) -> None:
    port, origin = front
    origin.take()
    with Client(("127.0.0.1", port)) as client:
        got = client.request("POST", "/a?b", headers=[GOOD, ("x-user", "admin")], body=b"12345")
        assert (got.status, got.body) == (200, b"behind")
        got = client.request("GET", "/a?b", headers=[("authorization", "Bearer bad")])
        assert got.status == 401
    (message,) = origin.take().messages
    assert message.values(b"x-user") == [b"me"] and message.body == b"12345"


@pytest.mark.parametrize("token", [None, "", "Bearer", "bearer good-me", "Bearer bad", "Basic x"])
def test_who_is_not_does_not(front: Front, token: str | None) -> None:
    port, origin = front
    origin.take()
    headers = [("x-user", "admin"), *([("authorization", token)] if token is not None else [])]
    for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"):
        with Client(("127.0.0.1", port)) as client:
            assert client.request(method, "/", headers=headers).status == 401
    origin.turn()
    assert origin.take().messages == []


# Requests that try to bring a name of the service's past it, or a second request past the first one's judgement.
HOSTILE = {
    "case": build_request(headers=[GOOD, ("X-USER", "admin"), ("x-User", "root")]),
    "underscore": build_request(headers=[GOOD, ("x_user", "admin"), ("X_Roles", "admin")]),
    "other signs": build_request(headers=[GOOD, ("x.user", "admin"), ("x~roles", "admin")]),
    "nominated": build_request(headers=[GOOD, ("connection", "x-user"), ("x-user", "admin")]),
    "trailer": b"POST / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\ntransfer-encoding: chunked\r\n\r\n"
    b"1\r\na\r\n0\r\nx-user: admin\r\nx-roles: admin\r\n\r\n",
    "blank": b"GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\nx-user : admin\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\nx-a: 1\r\n x-user: admin\r\n\r\n",
    "bare": b"GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\nx-a: 1\nx-user: admin\r\n\r\n",
    "nul": b"GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\nx-user\x00: admin\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\ncontent-length: 0\r\ncontent-length: 40\r\n\r\n"
    b"GET /in HTTP/1.1\r\nhost: a\r\nx-user: admin\r\n\r\n",
    "length and chunks": b"POST / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer good-me\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET /in HTTP/1.1\r\nhost: a\r\nx-user: admin\r\n\r\n",
    "behind a good one": build_request(headers=[GOOD])
    + build_request(target="/in", headers=[("x-user", "admin")]),
    "in a body": build_request(
        "POST", headers=[GOOD], body=build_request(target="/in", headers=[("x-user", "admin")])
    ),
    "upgrade": build_request(
        headers=[("connection", "upgrade"), ("upgrade", "x"), ("x-user", "admin")]
    )
    + build_request(target="/in", headers=[("x-user", "admin")]),
}


# Those of which the backend sees something.
ENTER = {
    "case",
    "underscore",
    "other signs",
    "nominated",
    "trailer",
    "behind a good one",
    "in a body",
}


@pytest.mark.parametrize("how", HOSTILE)
def test_nothing_is_smuggled(front: Front, how: str) -> None:
    port, origin = front
    origin.take()
    answers = 2 if how in ("behind a good one", "upgrade") else 1
    with Client(("127.0.0.1", port)) as client:
        client.expect("GET", "GET")
        client.send(HOSTILE[how])
        while len(client.responses) < answers and client.read_some():
            pass
        client.finish()
        while client.read_some():
            pass
    origin.turn()
    received = origin.take()
    assert len(received.messages) == (how in ENTER)
    for message in received.messages:
        assert message.target == b"/"
        assert message.values(b"x-user") == [b"me"]
        head = message.raw[: message.raw.index(b"\r\n\r\n")]
        assert b"admin" not in head and b"root" not in head
        assert message.trailers == ()
