"""Lease: a failed release and a disabled lease; tests/cluster proves the rest against a real API server."""

from __future__ import annotations

import logging

import pytest
from aiohttp import web

from controller.kube.lease import Lease, LeaseTimes
from tests.controller.waiting import running, until

from .script import failure, scripted


@pytest.mark.parametrize(
    ("status", "warned"), [(403, False), (404, False), (422, True), (500, True)]
)
async def test_not_given_back(caplog: pytest.LogCaptureFixture, status: int, warned: bool) -> None:
    """An installation that is removed takes its Roles and its Lease along; only other failures are trouble."""
    caplog.set_level(logging.INFO, "controller")

    async def serve(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return failure(404, "NotFound")
        if request.method == "POST":
            return web.json_response(await request.json())
        return failure(status, "Said")

    async with scripted(serve) as kube:
        lease = Lease(kube, "ns", "n", "one", LeaseTimes(retry=5.0))
        async with running(lease.run()):
            await until(lambda: lease.leading, "leading")
        assert not lease.leading
    said = [one for one in caplog.records if "not released" in one.getMessage()]
    assert [one.levelno >= logging.WARNING for one in said] == [warned]


async def test_a_disabled_lease_leads_at_once_without_a_call() -> None:
    calls: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        calls.append(request.path)
        return failure(404, "NotFound")

    async with scripted(serve) as kube:
        lease = Lease(kube, "ns", "n", "one", LeaseTimes(disabled=True))
        async with running(lease.run()):
            await until(lambda: lease.leading, "leading")
        assert not lease.leading
    assert not calls
