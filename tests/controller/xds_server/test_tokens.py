"""Tokens: the API server is asked rarely, never without need, and its word does not outlive a minute or the token."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Sequence
from typing import Any

import pytest

from controller.xds_server.limits import (
    REVIEW_REFUSED_SECONDS,
    REVIEW_SECONDS,
    REVIEWS,
    REVIEWS_AT_ONCE,
)
from controller.xds_server.refusal import Refused
from controller.xds_server.tokens import Subject, Tokens, audience_of
from tests.controller.xds_server.jwt import AUDIENCE, Reviewer, accepted, make_token
from tests.controller.xds_server.loopback import FLEET, POD

pytestmark = pytest.mark.pure


class World:
    """Tokens with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = time.time()
        self.reviewer = Reviewer()
        self.tokens = Tokens(self.reviewer, AUDIENCE, lambda: self.now)

    async def refused(self, token: str) -> str:
        with pytest.raises(Refused) as error:
            await self.tokens.subject(token)
        return error.value.cause


@pytest.fixture
def world() -> World:
    return World()


def test_audience() -> None:
    assert audience_of("edge-gateway", "edge-gateway-system", "cluster.local") == AUDIENCE


async def test_claims_that_are_nested_without_end_are_no_token(world: World) -> None:
    """Whoever reaches the port may send them."""
    payload = base64.urlsafe_b64encode(b'{"x":' + b"[" * 9_000).rstrip(b"=").decode()
    assert await world.refused(f"a.{payload}.c") == "token"
    assert not world.reviewer.asked


async def test_the_word_of_the_api_server_is_remembered_for_a_minute(world: World) -> None:
    assert REVIEW_SECONDS <= 60
    token = world.reviewer.accept(make_token())
    subject = await world.tokens.subject(token)
    namespace, account = FLEET.split("/")
    assert (subject.namespace, subject.account, subject.pod) == (namespace, account, POD)
    world.now += REVIEW_SECONDS - 1
    assert await world.tokens.subject(token) == subject
    assert world.reviewer.asked == 1
    world.now += 1
    del world.reviewer.answers[token]
    assert await world.refused(token) == "token"
    assert world.reviewer.asked == 2


async def test_nothing_outlives_the_token(world: World) -> None:
    token = world.reviewer.accept(make_token(seconds=20))
    subject = await world.tokens.subject(token)
    assert 19 <= subject.expires - world.now <= 21
    world.now += 22
    assert await world.refused(token) == "expired"
    assert world.reviewer.asked == 1


async def test_a_refused_token_is_asked_about_seldom(world: World) -> None:
    token = make_token()
    for _ in range(10):
        assert await world.refused(token) == "token"
    assert world.reviewer.asked == 1
    # A ServiceAccount that has just been made is let in soon.
    world.reviewer.accept(token)
    world.now += REVIEW_REFUSED_SECONDS
    assert isinstance(await world.tokens.subject(token), Subject)


async def test_an_api_server_that_cannot_be_asked_is_asked_again_at_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    token = make_token()
    world.reviewer.answers[token] = OSError("gone")
    for _ in range(100):
        assert await world.refused(token) == "review_failed"
    assert caplog.messages == ["tokens cannot be reviewed: OSError"]  # whoever knocks how often
    world.reviewer.accept(token)
    assert isinstance(await world.tokens.subject(token), Subject)
    world.now += REVIEW_SECONDS
    world.reviewer.answers[token] = OSError("gone")
    assert await world.refused(token) == "review_failed"
    assert len(caplog.messages) == 2


async def test_many_streams_with_one_token_ask_once_and_many_tokens_in_turns(world: World) -> None:
    under_way = most = 0

    async def review(token: str, audiences: Sequence[str]) -> Any:
        nonlocal under_way, most
        assert audiences == (AUDIENCE,)
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return accepted()

    tokens = Tokens(review, AUDIENCE, lambda: world.now)
    token = make_token()
    await asyncio.gather(*(tokens.subject(token) for _ in range(200)))
    assert tokens.asked == 1 and not tokens._asking
    await asyncio.gather(*(tokens.subject(make_token(jti=str(i))) for i in range(200)))
    assert tokens.asked == 201 and most <= REVIEWS_AT_ONCE


async def test_memory_is_bounded_and_holds_no_token(world: World) -> None:
    token = ""
    for i in range(REVIEWS + 50):
        token = make_token(jti=str(i))
        assert await world.refused(token) == "token"
    assert len(world.tokens._known) == REVIEWS
    assert token not in repr(world.tokens._known)
    assert all(isinstance(key, bytes) and len(key) == 32 for key in world.tokens._known)
