"""Tokens that are turned away, over real TLS: each with its status, its counter and a line in the log without a secret."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from controller.xds_server.refusal import Cause
from controller.xds_server.reports import REPORT
from edgefast.xds.messages import METHOD
from tests.controller.waiting import until
from tests.controller.xds_server.jwt import Reviewer, accepted, make_token
from tests.controller.xds_server.loopback import (
    ANYWHERE,
    FLEET,
    POD,
    SYSTEM,
    Loopback,
    client_pair,
    ended,
    shards_of,
)
from tests.controller.xds_server.refusing import (
    OTHER,
    OTHER_POD,
    STREAM,
    TABLE,
    UNARY,
    check,
    opening,
    serving,
    with_token,
)

pytestmark = pytest.mark.wire


@pytest.fixture
def reviewer() -> Reviewer:
    return Reviewer()


@pytest.fixture
def loopback(
    tmp_path: Path, reviewer: Reviewer
) -> contextlib.AbstractAsyncContextManager[Loopback]:
    return serving(tmp_path, review=reviewer)


BAD_TOKENS: dict[str, tuple[Callable[[], str], Cause]] = {
    "nothing": (lambda: "", "token"),
    "another scheme": (lambda: "Basic eyJ4", "token"),
    "no token": (lambda: "Bearer", "token"),
    "two parts": (lambda: "Bearer a.b", "token"),
    "four parts": (lambda: "Bearer a.b.c.d", "token"),
    "no base64": (lambda: "Bearer a.!.c", "token"),
    "no claims": (lambda: "Bearer eyJhIjoxfQ.eyJhIjoxfQ.c", "token"),
    "too long": (lambda: "Bearer " + "x" * 17_000, "token"),
    "truncated": (lambda: "Bearer " + make_token()[:-30], "token"),
    "expired": (lambda: "Bearer " + make_token(seconds=-5), "expired"),
    "no end": (lambda: "Bearer " + make_token(exp="never"), "token"),
    "of the API server": (
        lambda: "Bearer " + make_token("https://kubernetes.default.svc"),
        "audience",
    ),
    "of another controller": (
        lambda: "Bearer " + make_token("edge-gateway.other.svc.cluster.local"),
        "audience",
    ),
}


@pytest.mark.parametrize("method", [METHOD, STREAM, UNARY, REPORT, "/", "/a/b"])
async def test_no_token(loopback: Loopback, caplog: Any, method: str) -> None:
    async with loopback.channel(None, loopback.tokens) as channel:
        call = channel.stream_stream(method)()
        said = await ended(call)
    check(loopback, said, "UNAUTHENTICATED", "no_credential", caplog)


@pytest.mark.parametrize("kind", BAD_TOKENS)
async def test_a_bad_token(loopback: Loopback, reviewer: Reviewer, caplog: Any, kind: str) -> None:
    make, cause = BAD_TOKENS[kind]
    async with loopback.channel(None, loopback.tokens) as channel:
        call = channel.stream_stream(METHOD)(metadata=(("authorization", make()),))
        said = await ended(call)
    check(loopback, said, "UNAUTHENTICATED", cause, caplog)
    # What cannot be right costs the API server nothing.
    assert reviewer.asked == 0


@pytest.mark.parametrize(
    "answer, node, code, cause",
    [
        (
            None,
            POD,
            "UNAUTHENTICATED",
            "token",
        ),  # not signed by this cluster, or of a pod that is gone
        (accepted(audiences=()), POD, "UNAUTHENTICATED", "audience"),
        (accepted(audiences=("other",)), POD, "UNAUTHENTICATED", "audience"),
        (accepted(f"{SYSTEM}/default"), POD, "PERMISSION_DENIED", "unknown_fleet"),
        (accepted("elsewhere/" + FLEET.split("/")[1]), POD, "PERMISSION_DENIED", "unknown_fleet"),
        (accepted(groups=("system:authenticated",)), POD, "PERMISSION_DENIED", "service_account"),
        (accepted(username="admin"), POD, "PERMISSION_DENIED", "service_account"),
        (accepted(username="system:node:n1"), POD, "PERMISSION_DENIED", "service_account"),
        (accepted(pod=None), POD, "PERMISSION_DENIED", "service_account"),
        (accepted(pod=POD), POD[:-1] + "x", "PERMISSION_DENIED", "node"),  # another pod's
        (accepted(), OTHER_POD, "PERMISSION_DENIED", "node"),  # another tenant's node id
        (accepted(OTHER, pod=OTHER_POD), POD, "PERMISSION_DENIED", "node"),
    ],
)
async def test_a_token_of_somebody_else(
    loopback: Loopback,
    reviewer: Reviewer,
    caplog: Any,
    answer: Any,
    node: str,
    code: str,
    cause: Cause,
) -> None:
    token = make_token()
    if answer is not None:
        reviewer.answers[token] = answer
    async with loopback.channel(None, loopback.tokens) as channel:
        call = channel.stream_stream(METHOD)(metadata=(("authorization", f"Bearer {token}"),))
        # Before the gate nothing is read: only the node is told by a message.
        messages = (opening(node),) if cause == "node" else ()
        said = await ended(call, *messages)
    check(loopback, said, code, cause, caplog)
    assert reviewer.asked == 1


async def test_a_good_token_reads_its_own_fleet_and_no_other_method(
    loopback: Loopback, reviewer: Reviewer, caplog: Any
) -> None:
    token = reviewer.accept(make_token())
    async with loopback.proxy(token=token) as proxy:
        await proxy.take()
        assert proxy.version == TABLE.version
    metadata = (("authorization", f"Bearer {token}"),)
    async with loopback.channel(None, loopback.tokens) as channel:
        for method in (STREAM, REPORT, "/", UNARY):
            said = await ended(channel.stream_stream(method)(metadata=metadata))
            assert said.code == "UNIMPLEMENTED"
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await channel.unary_unary(UNARY)(opening(), metadata=metadata)
        assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert loopback.server.refusals.counts["method"] == 5
    assert reviewer.asked == 1  # remembered


async def test_a_unary_call_of_the_one_method_is_an_opening_that_never_ends(
    loopback: Loopback, caplog: Any
) -> None:
    async with loopback.channel(None, loopback.tokens) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await channel.unary_unary(METHOD)(opening())
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
    async with loopback.channel(client_pair(loopback.ring)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await channel.unary_unary(METHOD)(opening())
        # The peer has said its last before the opening was whole.
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert loopback.server.counts.messages == 0


@pytest.mark.parametrize("method", [METHOD, UNARY])
async def test_the_closed_port_asks_nobody(
    loopback: Loopback, reviewer: Reviewer, caplog: Any, method: str
) -> None:
    """18001 in Controller Namespace mode: a good token, a good certificate, anything."""
    token = reviewer.accept(make_token())
    closed = await loopback.server.serve_nobody(ANYWHERE)
    async with loopback.channel(client_pair(loopback.ring), closed) as channel:
        metadata = (("authorization", f"Bearer {token}"),)
        said = await ended(channel.stream_stream(method)(metadata=metadata))
    check(loopback, said, "PERMISSION_DENIED", "closed", caplog)
    assert "port 18000" in said.details
    assert reviewer.asked == 0


async def test_one_pod_has_few_streams(loopback: Loopback, reviewer: Reviewer, caplog: Any) -> None:
    """A tenant's pod cannot take the places of all: openings that do not end have no node yet that is replaced."""
    token = reviewer.accept(make_token())
    neighbour = reviewer.accept(make_token(name="neighbour"), fleet=OTHER, pod=OTHER_POD)
    metadata = (("authorization", f"Bearer {token}"),)
    async with loopback.channel(None, loopback.tokens) as channel:
        calls = [channel.stream_stream(METHOD)(metadata=metadata) for _ in range(4)]
        for call in calls:
            await call.initial_metadata()
        await until(lambda: loopback.server.counts.streams == 4)
        said = await with_token(loopback, token)
        check(loopback, said, "UNAVAILABLE", "crowded", caplog)
        async with loopback.proxy(token=neighbour, node=OTHER_POD) as proxy:
            await proxy.take()
        calls[0].cancel()
        await until(lambda: loopback.server.counts.streams == 3)
        async with loopback.proxy(token=token) as proxy:
            await proxy.take()
        for call in calls:
            call.cancel()
    await until(lambda: not loopback.server.counts.streams)
    assert not loopback.server._of_pods


async def test_a_stream_ends_with_its_token(
    loopback: Loopback, reviewer: Reviewer, caplog: Any
) -> None:
    token = reviewer.accept(make_token(seconds=3))
    async with loopback.proxy(token=token) as proxy:
        await proxy.take()
        said = await proxy.end()
    check(loopback, said, "UNAUTHENTICATED", "expired", caplog)
    # Replayed afterwards, it opens nothing.
    assert (await with_token(loopback, token)).code == "UNAUTHENTICATED"


async def test_a_token_is_asked_about_again_and_an_absent_api_server_ends_nothing(
    loopback: Loopback, reviewer: Reviewer, caplog: Any
) -> None:
    token = reviewer.accept(make_token())
    tokens = loopback.server.tokens
    async with loopback.proxy(token=token) as proxy:
        await proxy.take()
        assert reviewer.asked == 1
        tokens.forget()
        reviewer.answers[token] = ConnectionError(f"refused {token}")
        loopback.fleets.publish(FLEET, shards_of({"a": "1"}))
        await proxy.take()
        assert reviewer.asked == 2
        # New streams are not let in meanwhile.
        assert (await with_token(loopback, token)).code == "UNAVAILABLE"
        reviewer.answers[token] = accepted(pod="another")
        tokens.forget()
        assert (await with_token(loopback, token, opening())).code == "PERMISSION_DENIED"
    assert loopback.server.refusals.counts["review_failed"] == 1
    assert not [one for one in caplog.messages if token in one or "eyJ" in one]


async def test_a_token_whose_pod_is_gone_ends_its_stream_with_the_next_change(
    loopback: Loopback, reviewer: Reviewer, caplog: Any
) -> None:
    token = reviewer.accept(make_token())
    async with loopback.proxy(token=token) as proxy:
        await proxy.take()
        loopback.server.tokens.forget()
        del reviewer.answers[token]
        loopback.fleets.publish(FLEET, shards_of({"a": "1"}))
        said = await proxy.end()
    check(loopback, said, "UNAUTHENTICATED", "token", caplog)
    assert proxy.version == TABLE.version


async def test_many_refusals_are_all_counted_and_few_are_logged(
    loopback: Loopback, caplog: Any
) -> None:
    loopback.server.refusals._clock = lambda: 7.5  # all within a second
    async with loopback.channel(None, loopback.tokens) as channel:
        for _ in range(100):
            await ended(channel.stream_stream(METHOD)())
    assert loopback.server.refusals.counts["no_credential"] == 100
    assert len([one for one in caplog.messages if "no_credential" in one]) == 1


@pytest.fixture(autouse=True)
def _has_received(caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger="edgefast.controller.push")
