"""Tokens that are turned away, over real TLS: each with its status, its counter and a line in the log without a secret."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from controller.push.refusal import Cause
from controller.push.reports import REPORT
from edgefast.xds.messages import METHOD
from tests.controller.push.jwt import Reviewer, accepted, make_token
from tests.controller.push.loopback import (
    FLEET,
    POD,
    SYSTEM,
    Loopback,
    client_pair,
    ended,
    shards_of,
)
from tests.controller.push.refusing import (
    OTHER,
    OTHER_POD,
    STREAM,
    TABLE,
    UNARY,
    check,
    opening,
    run,
    with_token,
)

pytestmark = pytest.mark.wire


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
def test_no_token(tmp_path: Path, caplog: Any, method: str) -> None:
    async def body(loopback: Loopback) -> None:
        async with loopback.channel(None, loopback.tokens) as channel:
            call = channel.stream_stream(method)()
            said = await ended(call)
        check(loopback, said, "UNAUTHENTICATED", "no_credential", caplog)

    run(body, tmp_path, review=Reviewer())


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_a_bad_token(tmp_path: Path, caplog: Any, kind: str) -> None:
    make, cause = BAD_TOKENS[kind]
    reviewer = Reviewer()

    async def body(loopback: Loopback) -> None:
        async with loopback.channel(None, loopback.tokens) as channel:
            call = channel.stream_stream(METHOD)(metadata=(("authorization", make()),))
            said = await ended(call)
        check(loopback, said, "UNAUTHENTICATED", cause, caplog)
        # What cannot be right costs the API server nothing.
        assert reviewer.asked == 0

    run(body, tmp_path, review=reviewer)


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
def test_a_token_of_somebody_else(
    tmp_path: Path, caplog: Any, answer: Any, node: str, code: str, cause: Cause
) -> None:
    reviewer = Reviewer()
    token = make_token()
    if answer is not None:
        reviewer.answers[token] = answer

    async def body(loopback: Loopback) -> None:
        async with loopback.channel(None, loopback.tokens) as channel:
            call = channel.stream_stream(METHOD)(metadata=(("authorization", f"Bearer {token}"),))
            # Before the gate nothing is read: only the node is told by a message.
            messages = (opening(node),) if cause == "node" else ()
            said = await ended(call, *messages)
        check(loopback, said, code, cause, caplog)
        assert reviewer.asked == 1

    run(body, tmp_path, review=reviewer)


def test_a_good_token_reads_its_own_fleet_and_no_other_method(tmp_path: Path, caplog: Any) -> None:
    reviewer = Reviewer()
    token = reviewer.accept(make_token())

    async def body(loopback: Loopback) -> None:
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

    run(body, tmp_path, review=reviewer)


def test_a_unary_call_of_the_one_method_is_an_opening_that_never_ends(
    tmp_path: Path, caplog: Any
) -> None:
    async def body(loopback: Loopback) -> None:
        async with loopback.channel(None, loopback.tokens) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await channel.unary_unary(METHOD)(opening())
            assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
        async with loopback.channel(client_pair(loopback.ring)) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await channel.unary_unary(METHOD)(opening())
            # The peer has said its last before the opening was whole: there is nothing to answer.
            assert error.value.code() is not grpc.StatusCode.OK
        assert loopback.server.counts.messages == 0

    run(body, tmp_path, review=Reviewer())


def test_a_stream_ends_with_its_token(tmp_path: Path, caplog: Any) -> None:
    reviewer = Reviewer()
    token = reviewer.accept(make_token(seconds=3))

    async def body(loopback: Loopback) -> None:
        async with loopback.proxy(token=token) as proxy:
            await proxy.take()
            said = await proxy.end()
        check(loopback, said, "UNAUTHENTICATED", "expired", caplog)
        # Replayed afterwards, it opens nothing.
        assert (await with_token(loopback, token)).code == "UNAUTHENTICATED"

    run(body, tmp_path, review=reviewer)


def test_a_token_is_asked_about_again_and_an_absent_api_server_ends_nothing(
    tmp_path: Path, caplog: Any
) -> None:
    reviewer = Reviewer()
    token = reviewer.accept(make_token())

    async def body(loopback: Loopback) -> None:
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

    run(body, tmp_path, review=reviewer)


def test_a_token_whose_pod_is_gone_ends_its_stream_with_the_next_change(
    tmp_path: Path, caplog: Any
) -> None:
    reviewer = Reviewer()
    token = reviewer.accept(make_token())

    async def body(loopback: Loopback) -> None:
        async with loopback.proxy(token=token) as proxy:
            await proxy.take()
            loopback.server.tokens.forget()
            del reviewer.answers[token]
            loopback.fleets.publish(FLEET, shards_of({"a": "1"}))
            said = await proxy.end()
        check(loopback, said, "UNAUTHENTICATED", "token", caplog)
        assert proxy.version == TABLE.version

    run(body, tmp_path, review=reviewer)


def test_many_refusals_are_all_counted_and_few_are_logged(tmp_path: Path, caplog: Any) -> None:
    async def body(loopback: Loopback) -> None:
        async with loopback.channel(None, loopback.tokens) as channel:
            for _ in range(100):
                await ended(channel.stream_stream(METHOD)())
        assert loopback.server.refusals.counts["no_credential"] == 100
        assert len([one for one in caplog.messages if "no_credential" in one]) <= 40

    run(body, tmp_path, review=Reviewer())


@pytest.fixture(autouse=True)
def _heard(caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger="edgefast.controller.push")
