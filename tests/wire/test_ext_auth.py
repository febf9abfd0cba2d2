"""A server for external authorization as a process of its own, behind a real proxy. The rules: core/policy/test_auth_*."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from edgefast import ir
from edgefast.ir.policy import AuthBackend, ExtAuth, PolicyUnit
from edgefast.proxy.tables.last_good import LastGood
from edgefast.table import compile_fleet
from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from proxy.command import Process
from wire.harness.client import Client
from wire.harness.ports import free_port

SERVER = Path(__file__).parents[1] / "core" / "policy" / "authserver.py"
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
