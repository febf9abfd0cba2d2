"""Applier: what was applied and has not been seen yet is no drift; all else is tested against a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from controller.infra.applier import Applier
from controller.infra.holdings import Holdings
from controller.infra.objectref import ref_of_manifest
from controller.infra.observe import Observer
from controller.infra.placement import MANAGER, Manifest, Placement
from controller.infra.render import render_fleet
from edgefast import ir
from tests.controller.kube.script import event, page, scripted, stream
from tests.controller.kube.waiting import run, running, until

PLACE = Placement(image="edgefast/proxy:1", ca="PEM\n", namespace="ns")
FLEET = ir.Infra(name="edge-a", namespace="ns", selector=(("app", "edge-a"),), replicas=2)
KEY = "ns/edge-a"


def live(manifest: Manifest, version: int) -> dict[str, Any]:
    """Return an object as a server has it after it was applied."""
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {}}
    meta = {"uid": "u", "resourceVersion": str(version), "managedFields": [entry]}
    return {**manifest, "metadata": {**manifest["metadata"], **meta}}


class Server:
    """Lists the objects of FLEET; what is applied is seen by a watch only when it is told."""

    def __init__(self) -> None:
        self.objects = {one["kind"].lower() + "s": live(one, 1) for one in rendered(FLEET)}
        self.applied: list[dict[str, Any]] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.split("/")[request.path.split("/").index("ns") + 1]
        if request.method == "PATCH":
            made = live(json.loads(await request.read()), 10 + len(self.applied))
            self.applied.append(made)
            return web.json_response(made)
        if "watch" not in request.query:
            there = self.objects.get(plural)
            return page(5, *([there] if there else []))
        return await stream(request)


def rendered(infra: ir.Infra) -> tuple[Manifest, ...]:
    return render_fleet(infra, PLACE)


def wanted(infra: ir.Infra) -> Mapping[str, tuple[Manifest, ...]]:
    return {KEY: rendered(infra)}


def test_what_is_not_seen_yet_is_no_drift() -> None:
    server = Server()

    async def test() -> None:
        async with scripted(server.serve) as kube:
            holdings = Holdings(kube, PLACE, ("ns",))
            applier = Applier(kube, holdings, PLACE.identity, lambda: True)
            async with running(holdings.run(), applier.run()):
                applier.want(wanted(FLEET))
                await until(lambda: applier.settled, "as it was")
                first = applier.applied
                applier.want(wanted(msgspec.structs.replace(FLEET, replicas=3)))
                await until(lambda: applier.settled, "changed")
                assert applier.applied == first + 1  # the Deployment
                # Something else of the fleet is seen meanwhile, as its own events are after every change.
                for one in rendered(FLEET):
                    for tell in holdings.on_object:
                        tell(ref_of_manifest(one), True)
                    await until(lambda: applier.settled, "looked at")
                assert applier.applied == first + 1

    run(test())


def test_what_somebody_else_changes_is_drift() -> None:
    server = Server()
    changed = live(rendered(msgspec.structs.replace(FLEET, replicas=7))[3], 99)

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query and "deployments" in request.path:
            await until(lambda: len(server.applied) == len(server.objects))
            return await stream(request, event("MODIFIED", changed))
        return await server.serve(request)

    async def test() -> None:
        async with scripted(serve) as kube:
            holdings = Holdings(kube, PLACE, ("ns",))
            applier = Applier(kube, holdings, PLACE.identity, lambda: True)
            applier.want(wanted(FLEET))
            async with running(holdings.run(), applier.run()):
                await until(lambda: applier.settled and applier.applied > len(server.objects))
        assert server.applied[-1]["spec"]["replicas"] == 2

    run(test())


class Lagging:
    """Has nothing at first, and its watches never tell: what there is, only asking for it says."""

    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self.handed: list[Any] = []  # specs applied for the autoscaler
        self.replicas = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        if not request.path.endswith("/edge-a"):
            return page(5)
        if request.method == "PATCH":
            made = json.loads(await request.read())
            if request.query["fieldManager"] != MANAGER:
                self.handed.append(made["spec"])
            if made["kind"] == "Deployment":
                # What nobody else owns has its default again without us.
                present = self.replicas if self.handed else 1
                self.replicas = made["spec"].get("replicas", present)
            self.there[request.path] = live(made, 10)
        found = self.there.get(request.path)
        if found is None:
            return web.json_response({"reason": "NotFound", "code": 404}, status=404)
        if found["kind"] == "Deployment":
            found = {**found, "spec": {**found["spec"], "replicas": self.replicas}}
        return web.json_response(found)


def test_replicas_are_handed_over_once_and_as_they_are() -> None:
    """Whether the watch has brought the last write or not: what was written says who owns them."""
    server = Lagging()

    async def test() -> None:
        async with scripted(server.serve) as kube:
            holdings = Holdings(kube, PLACE, ("ns",))
            applier = Applier(kube, holdings, PLACE.identity, lambda: True)
            async with running(holdings.run(), applier.run()):
                applier.want(wanted(msgspec.structs.replace(FLEET, replicas=5)))
                await until(lambda: applier.settled, "made")
                scaled = msgspec.structs.replace(FLEET, replicas=None, hpa=ir.InfraHPA(9))
                applier.want(wanted(scaled))
                await until(lambda: applier.settled, "handed over")
                assert server.handed == [{"replicas": 5}]
                assert server.replicas == 5
                server.replicas = 8  # the autoscaler
                applier.want(wanted(msgspec.structs.replace(scaled, workers=3)))
                await until(lambda: applier.settled, "changed")
                assert len(server.handed) == 1 and server.replicas == 8

    run(test())


def test_ports_count_once_they_are_on_the_service() -> None:
    """Applied is not enough: what a fleet has taken over is judged by what is there."""
    more = msgspec.structs.replace(FLEET, ports=(ir.InfraPort("http-80", 80, 10080),))
    server, open_ = Server(), asyncio.Event()
    (changed,) = (live(one, 99) for one in rendered(more) if one["kind"] == "Service")

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query and "services" in request.path.split("/"):
            await open_.wait()
            return await stream(request, event("MODIFIED", changed))
        return await server.serve(request)

    async def test() -> None:
        async with scripted(serve) as kube:
            holdings = Holdings(kube, PLACE, ("ns",))
            applier = Applier(kube, holdings, PLACE.identity, lambda: True)
            observer = Observer(holdings)
            changes: list[tuple[int, ...]] = []
            observer.on_change = lambda: changes.append(observer.states()[0].ports)
            applier.want(wanted(more))
            async with running(holdings.run(), applier.run()):
                await until(lambda: applier.settled and applier.applied, "applied")
                assert changes[-1] == ()
                open_.set()
                await until(lambda: changes[-1] == (80,), "seen")

    run(test())
