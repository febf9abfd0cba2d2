"""Proxies of a cluster: which pods are asked, how, for how long; and what is shown of those that do not answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from aiohttp import web

from controller.cli import proxies
from controller.cli.cluster_status import make_proxy_rows, make_trouble_rows
from controller.cli.proxies import Pod, list_pods, read_pages
from controller.kube.client import Kube
from edgefast.cli.counters import Page, read_page
from tests.controller.kube.script import failure, page, scripted

pytestmark = pytest.mark.pure

PAGE = 'edgefast_info{version="1",table="feed"} 1\nedgefast_ready 1\n'


def pod(name: str, *, phase: str = "Running", address: str = "", fleet: str = "e/f") -> Pod:
    return Pod(namespace="e", name=name, fleet=fleet, address=address, phase=phase)


def read(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], *pods: Pod
) -> dict[str, Page | str]:
    async def work() -> dict[str, Page | str]:
        async with scripted(handler) as kube:
            return await read_pages(kube, pods)

    return asyncio.run(work())


def test_pods_are_asked_through_the_api_server() -> None:
    asked = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(text=PAGE)

    found = read(handler, pod("one"), pod("two", phase="Pending"))
    assert asked == ["/api/v1/namespaces/e/pods/one:19001/proxy/metrics"]
    one = found["e/one"]
    assert isinstance(one, Page) and (one.table, one.ready) == ("feed", True)
    assert found["e/two"] == "its pod is Pending"


def test_what_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(request: web.Request) -> web.Response:
        if "none" in request.path:
            return failure(503, "ServiceUnavailable")
        if "refused" in request.path:
            return failure(403, "Forbidden")
        return web.Response(text="up 1\n")

    # A port that is taken and not listened at: nobody answers there, whatever else this machine runs.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(proxies, "METRICS_PORT", taken.getsockname()[1])
        found = read(handler, pod("none"), pod("refused", address="127.0.0.1"), pod("other"))
    assert "503 ServiceUnavailable" in str(found["e/none"])
    assert str(found["e/refused"]).startswith("pods/proxy: Forbidden; at 127.0.0.1: ")
    assert found["e/other"] == "not the metrics of an edgefast proxy"


def test_who_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "_EACH", 0.05)

    async def handler(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    assert "Timeout" in str(read(handler, pod("silent"))["e/silent"])


class Slow:
    """A way to pods that takes its time, and counts who is on it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.asked = self.under_way = self.most = 0

    async def read(self, path: str, *, deadline: float) -> bytes:
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(self._seconds)
        self.under_way -= 1
        return PAGE.encode()


def test_a_few_at_once_and_never_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod(f"p{number}") for number in range(40)]
    quick = Slow(0.001)
    found = asyncio.run(read_pages(cast(Kube, quick), pods))
    assert (quick.most, quick.asked) == (8, 40)
    assert all(isinstance(one, Page) for one in found.values())

    monkeypatch.setattr(proxies, "_ALL", 0.05)
    stuck = Slow(3600)
    found = asyncio.run(read_pages(cast(Kube, stuck), pods))
    assert stuck.asked == 8
    assert set(found.values()) == {"not asked within 0.05 s, there are too many"}


def test_pods_of_fleets() -> None:
    def one(name: str, labels: dict[str, str], owner: str, **meta: Any) -> dict[str, Any]:
        owners = [{"kind": "ReplicaSet", "name": owner}]
        return {
            "metadata": {
                "namespace": "e",
                "name": name,
                "labels": labels,
                "ownerReferences": owners,
                **meta,
            },
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        }

    edge = "gateway.edge.io"
    own = {f"{edge}/owning-gateway-name": "gw", f"{edge}/owning-gateway-namespace": "shop"}
    listed = [
        one("b", {**own, "pod-template-hash": "12ab"}, "edge-shop-gw-9-12ab"),
        one("a", {f"{edge}/owning-gatewayclass": "merged"}, "edge-merged-7"),
        one("c", own, "edge-shop-gw-9", deletionTimestamp="2026-01-01T00:00:00Z"),
    ]

    async def handler(request: web.Request) -> web.Response:
        assert request.query["labelSelector"] == f"{proxies.PROXIES},x=y"
        return page(1, *listed)

    async def work() -> tuple[Pod, ...]:
        async with scripted(handler) as kube:
            return await list_pods(kube, None, "x=y")

    merged, plain = asyncio.run(work())
    assert (merged.key, merged.fleet, merged.gateway_class) == ("e/a", "e/edge-merged-7", "merged")
    assert (plain.fleet, plain.gateway, plain.address) == (
        "e/edge-shop-gw-9",
        "shop/gw",
        "10.0.0.1",
    )


# --- rows ---------------------------------------------------------------------------------------


def table(version: str) -> Page:
    return Page(at=1.0, version="1", table=version, numbers={"ready": 1, "workers": 2})


def node(name: str, version: str, *, connected: bool = True, refused: tuple[str, ...] = ()) -> Any:
    return {"name": name, "version": version, "connected": connected, "refused": list(refused)}


def test_rows_with_a_controller_that_answers() -> None:
    nodes = [
        node("a", "v2"),
        node("b", "v1"),
        node("c", "v1", refused=("virtual_host x: y",)),
        node("gone", "v1", connected=False),
    ]
    fleets = [{"fleet": "e/f", "version": "v2", "nodes": nodes}]
    pods = [pod("a"), pod("b"), pod("c")]
    pages: dict[str, Page | str] = {"e/a": table("v2"), "e/b": "no answer", "e/c": table("v1")}
    rows = {one.name: one for one in make_proxy_rows(pods, pages, fleets)}
    assert {name: one.state for name, one in rows.items()} == {
        "a": "up to date",
        "b": "behind",
        "c": "refuses virtual_host x: y",
        "gone": "not connected",
    }
    assert (rows["b"].table, rows["b"].ready) == ("v1", None)
    assert (rows["a"].ready, rows["a"].workers) == (True, "0/2")


def test_rows_without_one() -> None:
    pods = [pod("a"), pod("b"), pod("c", fleet="e/g"), pod("d", fleet="e/g")]
    pages: dict[str, Page | str] = {
        "e/a": table("v1"),
        "e/b": table("v2"),
        "e/c": table("v3"),
        "e/d": "no answer",
    }
    states = [one.state for one in make_proxy_rows(pods, pages, [])]
    differ = "proxies of the fleet have different tables"
    assert states == [differ, differ, "", "no answer"]


def test_stores_that_proxies_have_trouble_with() -> None:
    store = 'edgefast_ratelimit_store_troubles{store="redis:6379",trouble="%s"} 2\n'
    pods = [pod("a"), pod("b"), pod("c"), pod("d", fleet="e/g")]
    pages: dict[str, Page | str] = {
        "e/a": read_page(PAGE + store % "down", 0.0),
        "e/b": read_page(PAGE + store % "down" + store % "allkeys-lru", 0.0),
        "e/c": "no answer",
        "e/d": read_page(PAGE, 0.0),
    }
    evicting, down = make_trouble_rows(pods, pages, [])
    assert (down.object, down.reason, down.severity) == ("EdgeGateway", "NotCounted", "error")
    assert down.message.startswith(
        "rateLimit.backend: 2 of 2 proxies of e/f report that the store redis:6379 does not count;"
    )
    assert (evicting.reason, evicting.severity) == ("EvictingStore", "warning")
    assert "1 of 2 proxies of e/f report that the store" in evicting.message


def test_what_a_controller_hears_of_proxies_says_more() -> None:
    trouble = {
        "object": "EdgeGateway",
        "reason": "NotCounted",
        "message": "rateLimit.backend: the store redis:6379 does not count: Connection refused",
        "severity": "error",
    }
    nodes = [node("a", "v1"), node("b", "v1"), node("gone", "v1", connected=False)]
    for one in nodes:
        one["troubles"] = [] if one["name"] == "b" else [trouble]
    fleets = [{"fleet": "e/f", "version": "v1", "nodes": nodes}]
    store = 'edgefast_ratelimit_store_troubles{store="redis:6379",trouble="down"} 2\n'
    pages: dict[str, Page | str] = {"e/a": read_page(PAGE + store, 0.0), "e/b": table("v1")}
    (row,) = make_trouble_rows([pod("a"), pod("b")], pages, fleets)
    assert row.message == f"{trouble['message']} (reported by 1 of 2 proxies of e/f)"
    assert (row.object, row.reason, row.severity) == ("EdgeGateway", "NotCounted", "error")


def test_pages_tell_what_no_controller_has_heard() -> None:
    """Of a proxy without a stream, or of a release that says nothing on it: nobody else would tell."""
    nodes = [node("a", "v1"), node("b", "v1", connected=False)]
    store = 'edgefast_ratelimit_store_troubles{store="redis:6379",trouble="down"} 2\n'
    pages: dict[str, Page | str] = {"e/a": read_page(PAGE + store, 0.0), "e/b": "no answer"}
    pods = [pod("a"), pod("b")]
    for heard in ([], None):
        for one in nodes:
            one["troubles"] = heard
            if heard is None:
                del one["troubles"]
        (row,) = make_trouble_rows(pods, pages, [{"fleet": "e/f", "version": "v1", "nodes": nodes}])
        assert "1 of 1 proxies of e/f report that the store" in row.message
