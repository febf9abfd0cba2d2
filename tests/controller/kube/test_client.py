"""Kube and faults: 429, answers that are none, redirects, connections that break."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from controller.kube.apis import APIS, Api
from controller.kube.errors import LEAST_WAIT, MOST_WAIT, ApiError, error_from
from controller.kube.throttle import Backoff, Bucket

from .script import failure, page, scripted, stream

PATH = "/api/v1/namespaces/ns/configmaps/a"


async def test_too_many_requests_are_asked_again_after_the_time_named() -> None:
    calls = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        if calls < 3:
            return failure(429, "TooManyRequests", **{"Retry-After": "0"})
        return web.json_response({"ok": True})

    async with scripted(serve) as kube:
        assert await kube.patch(PATH, {}) == {"ok": True}
        assert calls == 3


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "InternalError"), (503, "ServiceUnavailable"), (422, "Invalid")]
)
async def test_other_failures_are_the_callers(status: int, reason: str) -> None:
    calls = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        return failure(status, reason)

    async with scripted(serve) as kube:
        with pytest.raises(ApiError) as error:
            await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {}})
        assert (error.value.status, error.value.reason) == (status, reason)
        assert error.value.message == f"said {reason}"
        assert calls == 1


async def test_what_is_no_api_server_is_told() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            raise web.HTTPFound("https://login.example.com")
        return web.Response(text="<html>welcome", content_type="text/html")

    async with scripted(serve) as kube:
        for call in (kube.get(PATH), kube.list(APIS["v1", "Pod"])):
            with pytest.raises(ApiError) as error:
                await call
            assert error.value.status == 0 and "not a valid Kubernetes object" in str(error.value)
        with pytest.raises(ApiError) as moved:
            await kube.delete(PATH)
        assert moved.value.status == 302


async def test_a_broken_connection_is_an_api_error() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "100"})
        await answer.prepare(request)
        await answer.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return answer

    async with scripted(serve) as kube:
        with pytest.raises(ApiError) as error:
            await kube.get(PATH)
        assert (error.value.status, error.value.reason) == (0, "Unreachable")


async def test_urgent_calls_do_not_wait_for_the_others() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if "slow" in request.path:
            await asyncio.Event().wait()
        return web.json_response({})

    async with scripted(serve) as kube, asyncio.TaskGroup() as group:
        slow = [group.create_task(kube.get("/slow")) for _ in range(64)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as late:
            await kube.get("/quick", deadline=0.1)
        assert late.value.reason == "Timeout"
        assert await kube.get("/quick", urgent=True) == {}
        for one in slow:
            one.cancel()


async def test_a_silent_watch_ends() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await stream(request)

    async with scripted(serve) as kube:
        batches = []
        with pytest.raises(ApiError) as silent:
            async for batch in kube.watch(
                APIS["v1", "Pod"], resource_version="1", seconds=60, silence=0.05
            ):
                batches.append(batch)
        assert silent.value.reason == "Silent" and batches == [()]


async def test_a_query_leaves_out_what_is_not_given() -> None:
    seen: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.append(str(request.rel_url))
        return page(1)

    async with scripted(serve) as kube:
        await kube.list(APIS["v1", "Pod"], "ns")
        await kube.list(APIS["v1", "Pod"], limit=3, label_selector="a in (b,c)")
    assert seen[0] == "/api/v1/namespaces/ns/pods"
    assert seen[1] == "/api/v1/pods?limit=3&labelSelector=a+in+%28b%2Cc%29"


def test_paths() -> None:
    role = APIS["rbac.authorization.k8s.io/v1", "ClusterRole"]
    assert role.path(name="a:b/c") == "/apis/rbac.authorization.k8s.io/v1/clusterroles/a:b%2Fc"
    pods = Api("", "v1", "Pod", "pods")
    assert pods.path() == "/api/v1/pods"
    assert pods.path("n", "p", "log") == "/api/v1/namespaces/n/pods/p/log"
    with pytest.raises(ValueError, match="namespace is needed"):
        pods.path(name="p")


def test_errors_have_the_words_of_the_server() -> None:
    assert error_from(409, b'{"reason":"AlreadyExists"}').exists
    assert not error_from(409, b'{"reason":"AlreadyExists"}').conflict
    assert error_from(409, b"").conflict
    assert error_from(410, b"{}").expired
    assert error_from(401, b"no").forbidden
    assert error_from(403, b"[]").forbidden
    assert error_from(429, b"", "7").retry_after == 7
    assert error_from(429, b"", "Sat, 21 Nov 2026 17:00:00 GMT").retry_after is None
    assert error_from(429, b"").retry_after is None
    assert len(error_from(500, b'{"message":"' + b"x" * 5000 + b'"}').message) == 1000


@pytest.mark.parametrize(
    ("said", "waited"),
    [
        ("-5", LEAST_WAIT),
        ("0", LEAST_WAIT),
        ("1e-9", LEAST_WAIT),
        ("86400", MOST_WAIT),
        ("inf", MOST_WAIT),
        ("1" * 400, MOST_WAIT),
        ("-inf", LEAST_WAIT),
        ("nan", None),
        ("soon", None),
    ],
)
def test_what_a_server_asks_for_is_waited_within_bounds(said: str, waited: float | None) -> None:
    """Neither a loop without a pause, nor a wait that no deadline was meant for."""
    assert error_from(429, b"", said).retry_after == waited


def test_waiting_doubles_up_to_its_most() -> None:
    backoff = Backoff(1.0, 8.0)
    waits = [backoff.next() for _ in range(6)]
    for wait, most in zip(waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert most / 2 <= wait <= most
    backoff.reset()
    assert backoff.next() <= 1.0


def test_a_bucket_lets_a_burst_through_and_then_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    bucket = Bucket(rate=10.0, burst=5)
    waits = [bucket.reserve() for _ in range(8)]
    assert waits == pytest.approx([0, 0, 0, 0, 0, 0.1, 0.2, 0.3], abs=1e-9)
    now += 100
    assert bucket.reserve() == 0


async def test_a_call_without_an_answer_ends_at_its_deadline() -> None:
    silent = True

    async def serve(request: web.Request) -> web.StreamResponse:
        if silent:
            return await stream(request)
        return web.json_response({"ok": True})

    async with scripted(serve) as kube:
        with pytest.raises(ApiError) as late:
            await kube.get(PATH, deadline=0.05)
        assert (late.value.status, late.value.reason) == (0, "Timeout")
        assert late.value.passing
        silent = False
        assert await kube.get(PATH) == {"ok": True}
