"""Pods: what XBackends select is followed, by one watch for each set of labels; who serves, who leaves, and what cannot be read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import msgspec
import pytest
from aiohttp import web

from controller.kube.pods import NOT_YET, Pods, list_pods
from controller.kube.references import referenced
from controller.kube.reflector import Item
from controller.kube.throttle import TRIES, RequestRate
from edgefast.api.core.selected_pod import SelectedPod, SelectedPods
from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.translate.settings import Settings
from tests.controller.waiting import running, until

from .script import event, failure, obj, page, scripted, stream

QUICK = RequestRate(backoff_first=0.001, backoff_most=0.01, silence=5.0, patience=0.2)
WEB = ("ns", "app=web")
ONE = SelectedPods(pods=(SelectedPod(address="10.0.0.1"),))


def pod(name: str, version: int, address: str, ready: str = "True", **meta: Any) -> dict[str, Any]:
    status = {
        "podIP": address,
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": ready}],
    }
    made = obj(name, version, status=status)
    made["metadata"].update(meta)
    return made


async def test_pods_come_and_go() -> None:
    asked: list[tuple[str, str]] = []
    changes: list[int] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append((request.path, request.query.get("labelSelector", "")))
        if "watch" not in request.query:
            gone = pod("gone", 4, "10.0.0.9")
            gone["status"]["phase"] = "Succeeded"
            return page(5, pod("a", 1, "10.0.0.1"), pod("b", 2, "10.0.0.2", "False"), gone)
        leaving = pod("a", 8, "10.0.0.1", deletionTimestamp="2026-01-01T00:00:00Z")
        return await stream(
            request,
            event("MODIFIED", pod("b", 6, "10.0.0.2")),
            event("MODIFIED", pod("b", 7, "10.0.0.2", labels={"x": "y"})),
            event("MODIFIED", leaving),
        )

    async with scripted(serve) as kube:
        pods = Pods(kube, lambda: changes.append(1), QUICK)
        async with running(pods.run()):
            assert not pods.want({WEB})
            both = (SelectedPod(address="10.0.0.1", leaving=True), SelectedPod(address="10.0.0.2"))
            found = SelectedPods(pods=both)
            await until(lambda: pods.table().get(WEB) == found, "followed")
            assert pods.want({WEB})
            assert pods.table() is pods.table()
            assert len(changes) == 3  # the list, b, a; labels are nobody's business
            assert pods.want(frozenset()) and not pods.table()
    assert set(asked) == {("/api/v1/namespaces/ns/pods", "app=web")}


async def test_what_may_not_be_read_holds_nothing_up() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return failure(403, "Forbidden")

    async with scripted(serve) as kube:
        pods = Pods(kube, lambda: None, QUICK)
        async with running(pods.run()):
            pods.want({WEB})
            await until(lambda: pods.want({WEB}), "answered")
            assert list(pods.problems) == ["pods.v1 in ns (app=web)"]
            assert pods.table() == {WEB: SelectedPods(unread="Forbidden")}
        table, refused = await list_pods(kube, {WEB})
        assert table == {WEB: SelectedPods(unread="Forbidden")} and refused.keys() == {WEB}


async def test_a_watch_that_was_replaced_says_nothing_any_more() -> None:
    lists: list[int] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            lists.append(1)
            return page(5)
        return await stream(request)

    async with scripted(serve) as kube:
        pods = Pods(kube, lambda: None, QUICK)
        async with running(pods.run()):
            await until(lambda: pods.want({WEB}), "read")
            put = pods._followed[WEB].reflector._on_put
            pods.want(frozenset())
            pods.want({WEB})
            raw = msgspec.Raw(msgspec.json.encode(pod("ghost", 6, "10.0.0.9")))
            put(Item("ns", "ghost", "6", raw))
            await until(lambda: pods.want({WEB}), "read again")
            assert len(lists) == 2 and pods.table() == {WEB: SelectedPods()}


@contextlib.asynccontextmanager
async def followed_pods(answer: Any, changes: list[int]) -> AsyncIterator[Pods]:
    """Follow Pods whose lists are answered by `answer`, and whose watches are silent."""

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        found: web.StreamResponse = await answer(request)
        return found

    async with scripted(serve) as kube:
        pods = Pods(kube, lambda: changes.append(1), QUICK)
        async with running(pods.run()):
            yield pods


@pytest.mark.parametrize("status", [500, 503, 429, 401, 0])
async def test_a_passing_fault_is_no_answer(status: int) -> None:
    lists: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        lists.append(1)
        if len(lists) > 2:
            return page(5, pod("a", 1, "10.0.0.1"))
        if not status:
            assert request.transport is not None
            request.transport.close()
        return failure(status or 500, "Passing", **{"Retry-After": "0.1"})

    async with followed_pods(answer, []) as pods:
        await until(lambda: pods.want({WEB}), "answered")
        assert pods.table()[WEB] == ONE
        assert len(lists) > 2


async def test_a_fault_that_lasts_holds_nothing_up_for_ever() -> None:
    lists: list[int] = []
    changes: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        lists.append(1)
        return failure(500, "InternalError")

    async with followed_pods(answer, changes) as pods:
        assert not pods.want({WEB})
        await until(lambda: changes, "told")
        assert len(lists) >= TRIES
        assert pods.want({WEB}) and pods.problems
        assert pods.table()[WEB].unread == "InternalError"


async def test_the_first_time_all_is_waited_for() -> None:
    go = asyncio.Event()
    changes: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query["labelSelector"] != "app=fast":
            await go.wait()
        return page(5, pod("a", 1, "10.0.0.1"))

    async with followed_pods(answer, changes) as pods:
        loop = asyncio.get_running_loop()
        late = loop.time() + 3 * QUICK.patience
        both = {WEB, ("ns", "app=fast")}
        await until(lambda: pods.want(both) or loop.time() > late, "patience")
        assert not pods.want(both)
        # What is selected later is waited for with patience.
        go.set()
        await until(lambda: pods.want(both), "all read")
        assert pods.table().keys() == both
        go.clear()
        changes.clear()
        more = both | {("ns", "app=slow")}
        assert not pods.want(more)
        await until(lambda: changes, "patience ends")
        assert pods.want(more)
        assert pods.table()["ns", "app=slow"] == SelectedPods(unread=NOT_YET)
        go.set()
        await until(lambda: pods.table()["ns", "app=slow"] == ONE, "read after all")


async def test_who_edits_without_pause_holds_up_nobody() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query["labelSelector"].startswith("app=v"):
            await asyncio.Event().wait()
        return page(5, pod("a", 1, "10.0.0.1"))

    async with followed_pods(answer, []) as pods:
        await until(lambda: pods.want({WEB}), "begun")
        loop = asyncio.get_running_loop()
        numbers = count()

        def edit() -> set[tuple[str, str]]:
            return {WEB, ("busy", f"app=v{next(numbers)}")}

        began = loop.time()
        assert not pods.want(edit())
        await until(lambda: pods.want(edit()), "once", seconds=10.0)
        assert loop.time() - began >= QUICK.patience * 0.9
        assert all(pods.want(edit()) for _ in range(20))
        # The others are waited for as ever, and the busy one again when it has been read whole.
        assert not pods.want({*edit(), ("ns", "app=other")})
        calm = ("busy", "app=calm")
        await until(lambda: pods.want({WEB, calm}) and pods.table()[calm] == ONE)
        assert not pods.want(edit())


async def _serve_some(request: web.Request) -> web.StreamResponse:
    """Answer for Pods of app=v... never, for others at once."""
    if request.query["labelSelector"].startswith("app=v"):
        await asyncio.Event().wait()
    return page(5, pod("a", 1, "10.0.0.1"))


async def test_who_comes_while_another_is_waited_for_is_waited_for_as_long() -> None:
    changes: list[int] = []
    async with followed_pods(_serve_some, changes) as pods:
        await until(lambda: pods.want({WEB}), "begun")
        stuck, both = {WEB, ("stuck", "app=v")}, {WEB, ("stuck", "app=v"), ("other", "app=v")}
        changes.clear()
        assert not pods.want(stuck)
        await until(lambda: changes, "patience with one is over")
        began = asyncio.get_running_loop().time()
        assert not pods.want(both)
        await until(lambda: len(changes) == 2, "patience with the other is over, too")
        assert asyncio.get_running_loop().time() - began >= QUICK.patience * 0.9
        assert not pods.waits and pods.want(both)


@pytest.mark.parametrize("several", [2, 9])
async def test_who_take_turns_hold_up_nobody(several: int) -> None:
    """Each begins anew when the one before is waited for no more."""
    async with followed_pods(_serve_some, []) as pods:
        await until(lambda: pods.want({WEB}), "begun")
        loop = asyncio.get_running_loop()
        numbers = count()

        def edit() -> set[tuple[str, str]]:
            whose = int(loop.time() / QUICK.patience * 3) % several
            return {WEB, (f"busy{whose}", f"app=v{next(numbers)}")}

        began = loop.time()
        await until(lambda: pods.want(edit()), "once", seconds=10.0)
        assert loop.time() - began <= QUICK.patience * 5


async def test_the_first_time_is_not_held_up_by_what_comes_later() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query["labelSelector"].startswith("app=v"):
            await asyncio.Event().wait()
        return page(5, pod("a", 1, "10.0.0.1"))

    async with followed_pods(answer, []) as pods:
        assert not pods.want({WEB, ("busy", "app=v0")})
        await until(lambda: pods.want({WEB, ("busy", "app=v1")}), "once", seconds=10.0)
        assert [one for one, found in pods.table().items() if not found.unread] == [WEB]


async def test_one_list_that_fails_is_one_that_is_not_read() -> None:
    met: list[str] = []
    both = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        labels = request.query["labelSelector"]
        if labels == "a b=c":
            return failure(400, "BadRequest")
        if labels == "app=half":
            return (
                failure(500, "InternalError")
                if "continue" in request.query
                else page(5, pod("a", 1, "10.0.0.1"), cursor="more")
            )
        met.append(labels)
        if len(met) == 2:
            both.set()
        await both.wait()  # they are read side by side
        return page(5, pod("a", 1, "10.0.0.1"))

    async with scripted(serve) as kube:
        odd, half, other = ("ns", "a b=c"), ("ns", "app=half"), ("ns", "app=other")
        table, refused = await list_pods(kube, {WEB, odd, half, other})
        assert {one for one, read in table.items() if read == ONE} == {WEB, other}
        assert table[odd].unread == "BadRequest"
        assert {one: error.status for one, error in refused.items()} == {odd: 400, half: 500}


def _backend(at: int, spec: str, namespace: str = "apps") -> str:
    return f"""
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackend
metadata: {{name: b{at:02}, namespace: {namespace}}}
spec: {spec}
"""


def test_what_is_referred_to() -> None:
    tls = (
        "{type: ExternalHostname, port: {number: 80}, externalHostname: {hostname: a.example.com}, tls: {mode: ClientAndServer, "
        'clientCertificateRef: {name: mine}, validation: {hostname: a.example.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}'
    )
    decoded = decode_documents(_backend(40, tls).encode(), "x.yaml")
    assert not decoded.problems
    found = Snapshot.of(decoded.objects)
    settings = Settings(standalone=False)
    assert referenced(found, settings) == {("ConfigMap", "apps", "ca"), ("Secret", "apps", "mine")}
    off = msgspec.structs.replace(settings, enable_x_backend=False)
    assert not referenced(found, off)
