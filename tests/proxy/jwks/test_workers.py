"""From an issuer through the agent to workers that verify: first keys, rotation, an issuer that goes, a worker that dies, an agent that begins anew."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auth.jwt.issuer import ISSUER, jwk, token
from edgefast import ir
from edgefast.ir.credentials import Jwt, JwtProvider, RemoteKeys
from edgefast.proxy.agent.agent import Agent
from edgefast.table import Shards
from edgefast.table.shards import make_resource
from proxy.jwks.token_worker import TOKENS
from proxy.living import agent_test, until, with_agent
from proxy.shards import make_fleet
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

COMMAND = (sys.executable, str(Path(__file__).with_name("token_worker.py")))
OLD, NEW = (jwk("ES256", number, kid=f"k{number}") for number in range(2))
FIRST, SECOND = (
    token(number=number, header={"kid": f"k{number}"}, iat=None) for number in range(2)
)
UNIT = "security/ns/p#jwt"
_numbers = itertools.count(1000)


class Issuer:
    """Publishes keys over HTTP."""

    def __init__(self) -> None:
        self.keys: list[Any] = [OLD]
        self.asked = 0
        self.port = 0

    async def __aenter__(self) -> Issuer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        body = json.dumps({"keys": self.keys}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()


def table(port: int, issuer: int) -> Shards:
    """A table whose policy believes the issuer on that port."""
    cluster = ir.Cluster(name="service/ns/idp/80", endpoints=(ir.Endpoint("127.0.0.1", issuer),))
    remote = RemoteKeys("http://idp.ns/keys", cluster.name)
    unit = ir.PolicyUnit(name=UNIT, jwt=Jwt((JwtProvider("p", ISSUER, ("api",), remote=remote),)))
    shards = make_fleet(port)
    more = [
        make_resource("cluster", cluster.name, msgspec.msgpack.encode(cluster)),
        make_resource("policy", UNIT, msgspec.msgpack.encode(unit)),
    ]
    resources = {**shards.resources, **{(one.type, one.name): one for one in more}}
    return Shards(resources, f"{shards.version}-{issuer}")


async def become(agent: Agent, made: bytes, word: str) -> list[str | None]:
    """Ask all workers until a token is this to them; returns what it was to them before."""
    seen: list[str | None] = []
    async with asyncio.timeout(60):
        for slot in agent.slots:
            while True:
                await until(lambda slot=slot: slot.serving, "worker")
                now = (await slot.dump(next(_numbers))).get(made.decode())
                if now == word:
                    break
                seen.append(now)
                await asyncio.sleep(0.005)
    return seen


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tokens"
    path.write_bytes(FIRST)
    monkeypatch.setenv(TOKENS, str(path))
    return path


@agent_test(command=COMMAND)
async def test_keys_come_rotate_and_survive_a_worker(agent: Agent, tokens: Path) -> None:
    port = free_port()

    async with Issuer() as issuer:
        assert (await agent.publish(table(port, issuer.port))).acknowledged
        assert set(await become(agent, FIRST, "")) <= {None}, "nobody was refused meanwhile"
        assert issuer.asked == 1, "one fetch for all workers"
        issuer.keys = [OLD, NEW]
        before = agent.slots[0].pid
        os.kill(before, signal.SIGKILL)
        await until(lambda: agent.slots[0].pid not in (0, before), "successor")
        assert set(await become(agent, FIRST, "")) <= {None}
        assert issuer.asked == 1 and agent.problems == ()
        agent.keys._sources["http://idp.ns/keys", "service/ns/idp/80", ""]._ended -= 60
        await asyncio.to_thread(tokens.write_bytes, FIRST + b"\n" + SECOND)
        assert set(await become(agent, SECOND, "")) <= {None}
        assert issuer.asked == 2, "a worker asked, and all have it"
        assert await become(agent, FIRST, "") == []


@agent_test(command=COMMAND)
async def test_an_issuer_that_is_gone_is_told(agent: Agent, tokens: Path) -> None:
    port = free_port()

    async with Issuer() as issuer:
        pass
    await agent.publish(table(port, issuer.port))
    await become(agent, FIRST, "keys")
    (problem,) = agent.problems
    assert "connection refused" in problem.text() and str(problem.object) == "SecurityPolicy ns/p"
    async with issuer:
        assert set(await become(agent, FIRST, "")) <= {None, "keys"}
        assert agent.problems == ()


def test_an_agent_that_begins_anew_has_them_from_disk(tokens: Path, tmp_path: Path) -> None:
    port = free_port()
    saved = tmp_path / "state" / "keys"

    async def first(agent: Agent) -> None:
        async with Issuer() as issuer:
            await agent.publish(table(port, issuer.port))
            await become(agent, FIRST, "")
            await until(lambda: saved.is_dir() and list(saved.iterdir()), "file")

    async def second(agent: Agent) -> None:
        await agent.publish(table(port, 1))
        assert set(await become(agent, FIRST, "")) <= {None}
        await agent.publish(make_fleet(port))
        assert agent.keys.told == {}

    with_agent(first, command=COMMAND, state_dir=tmp_path / "state")
    with_agent(second, command=COMMAND, state_dir=tmp_path / "state")
