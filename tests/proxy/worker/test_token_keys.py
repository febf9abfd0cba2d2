"""Keys of issuers on their way to a worker: in pieces, before and after its token verifier is there, and what the token verifier asks for."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from auth.jwt.issuer import ISSUER, jwk, key_set
from edgefast.core.policy.token_requirements import make_verifiers
from edgefast.ir.credentials import Jwt, JwtProvider, RemoteKeys
from edgefast.proxy.agent.shared_state import SharedState
from edgefast.proxy.agent.worker_update import WorkerUpdate
from edgefast.proxy.control import messages
from edgefast.proxy.control.channel import encode_frame
from edgefast.proxy.jwks.key_delivery import PublishedKeys
from edgefast.proxy.worker.token_keys import TokenKeys

pytestmark = pytest.mark.pure

URI = "https://idp.test/" + "k" * 2000
MANY = key_set(*(jwk("ES256", kid=f"{n:02}" + "k" * 200) for n in range(64)))
PROVIDER = JwtProvider("p", ISSUER, remote=RemoteKeys(URI))


class Channel:
    """Takes what a worker is sent, as frames."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def send(self, message: object, descriptors: object = ()) -> None:
        frame = encode_frame(message)
        self.sent.append(msgspec.msgpack.decode(frame[4:], type=messages.AgentMessage))


class Shared:
    """What `WorkerUpdate` asks of the agent for this."""

    def __init__(self) -> None:
        self.keys: dict[tuple[str, str], PublishedKeys] = {}


def keys_of(
    told: dict[tuple[str, str], PublishedKeys], update: WorkerUpdate, shared: Shared
) -> list[Any]:
    shared.keys.clear()
    shared.keys.update(told)
    channel: Any = Channel()

    async def send() -> None:
        await update._send_keys(channel)
        await update._send_keys_gone(channel)

    asyncio.run(send())
    return channel.sent  # type: ignore[no-any-return]


@pytest.mark.parametrize("data", [b"", b"x", b"x" * messages.KEYS_PART, MANY * 5])
def test_pieces_fit_and_are_all(data: bytes) -> None:
    parts = list(messages.split_keys(URI, "c", "", data))
    assert b"".join(one.data for one in parts) == data
    assert [one.last for one in parts] == [False] * (len(parts) - 1) + [True]
    assert all(len(encode_frame(one)) <= messages.FRAME_LIMIT for one in parts)


def test_a_worker_is_told_what_differs() -> None:
    shared: Any = Shared()
    assert SharedState is not None
    update = WorkerUpdate(0, shared)
    one, other = (URI, "", ""), (URI, "c", "")
    (first,) = keys_of({one: PublishedKeys(1, b"a")}, update, shared)
    assert first == messages.Keys(URI, "", "", b"a", True)
    assert keys_of({one: PublishedKeys(1, b"a")}, update, shared) == []
    both = {one: PublishedKeys(2, b"a"), other: PublishedKeys(3, b"")}
    assert [(said.cluster, said.data) for said in keys_of(both, update, shared)] == [
        ("", b"a"),
        ("c", b""),
    ]
    (gone,) = keys_of({other: PublishedKeys(3, b"")}, update, shared)
    assert gone == messages.KeysGone(URI, "", "")
    fresh = WorkerUpdate(0, shared)
    assert len(keys_of(both, fresh, shared)) == 2


async def test_before_and_after_the_desk_is_there() -> None:
    sent: list[messages.KeysWanted] = []
    arrived = asyncio.Event()

    async def send(message: messages.KeysWanted) -> None:
        sent.append(message)
        arrived.set()
        if len(sent) == 1:
            raise TimeoutError

    keys = TokenKeys(send)
    keys.close()
    running = asyncio.create_task(keys.run())
    for part in messages.split_keys(URI, "", "", MANY):
        keys.take(part)
    token_verifier = keys.token_verifier()
    assert keys.token_verifier() is token_verifier
    (verifier,) = make_verifiers(token_verifier, Jwt((PROVIDER,)))
    (source,) = verifier.sources.values()
    assert source.keys.known and not source.pending
    parts = list(messages.split_keys(URI, "", "", key_set(jwk("ES256"))))
    for part in parts:
        keys.take(part)
    for _ in range(2):
        keys._want((URI, "", ""))
        await arrived.wait()
        arrived.clear()
    assert sent == [messages.KeysWanted(URI, "", "")] * 2
    keys.take(messages.KeysGone(URI, "", ""))
    assert not source.keys.known
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    keys.close()
