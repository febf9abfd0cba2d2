"""Applier: what was applied and has not been seen yet is no drift; all else is tested against a real API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from aiohttp import web

from controller.fleets.apply import Applier
from controller.fleets.inventory import Inventory
from controller.fleets.object_ref import ref_of_manifest
from controller.fleets.observe import Observer
from controller.fleets.placement import MANAGER, Manifest, Placement
from controller.fleets.render import render_fleet
from edgefast import ir
from tests.controller.kube.script import event, page, scripted, stream
from tests.controller.waiting import running, until

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


async def test_what_is_not_seen_yet_is_no_drift() -> None:
    server = Server()
    async with scripted(server.serve) as kube:
        holdings = Inventory(kube, PLACE, ("ns",))
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


async def test_what_somebody_else_changes_is_drift() -> None:
    server = Server()
    changed = live(rendered(msgspec.structs.replace(FLEET, replicas=7))[3], 99)

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query and "deployments" in request.path:
            await until(lambda: len(server.applied) == len(server.objects))
            return await stream(request, event("MODIFIED", changed))
        return await server.serve(request)

    async with scripted(serve) as kube:
        holdings = Inventory(kube, PLACE, ("ns",))
        applier = Applier(kube, holdings, PLACE.identity, lambda: True)
        applier.want(wanted(FLEET))
        async with running(holdings.run(), applier.run()):
            await until(lambda: applier.settled and applier.applied > len(server.objects))
    assert server.applied[-1]["spec"]["replicas"] == 2


class Lagging:
    """Has nothing at first, and its watches never tell: what there is, only asking for it says."""

    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self.handed: list[Any] = []  # specs applied for the autoscaler
        self.replicas = 0
        self.owners: set[str] = set()  # field managers of spec.replicas
        self.loses_answers = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        if not request.path.endswith("/edge-a"):
            return page(5)
        if request.method == "PATCH":
            made = json.loads(await request.read())
            if made["kind"] == "Deployment":
                manager = request.query["fieldManager"]
                self.take(made["spec"], manager)
                if manager != MANAGER:
                    self.handed.append(made["spec"])
                if self.loses_answers:
                    self.loses_answers -= 1
                    return web.json_response({"reason": "Timeout", "code": 504}, status=504)
            self.there[request.path] = live(made, 10)
        found = self.there.get(request.path)
        if found is None:
            return web.json_response({"reason": "NotFound", "code": 404}, status=404)
        if found["kind"] == "Deployment":
            spec = {"f:replicas": {}} if MANAGER in self.owners else {}
            entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": spec}}
            meta = {**found["metadata"], "managedFields": [entry]}
            found = {
                **found,
                "metadata": meta,
                "spec": {**found["spec"], "replicas": self.replicas},
            }
        return web.json_response(found)

    def take(self, spec: dict[str, Any], manager: str) -> None:
        """Server-side apply with force, as far as `replicas` goes."""
        if "replicas" in spec:
            self.owners = {manager, *(self.owners if spec["replicas"] == self.replicas else ())}
            self.replicas = spec["replicas"]
        elif manager in self.owners or not self.replicas:
            self.owners.discard(manager)
            # What nobody owns any more has its default.
            self.replicas = self.replicas if self.owners else 1


def scaled(**more: Any) -> ir.Infra:
    """The fleet with an autoscaler."""
    return msgspec.structs.replace(FLEET, replicas=None, hpa=ir.InfraHPA(9), **more)


async def made(applier: Applier, infra: ir.Infra) -> None:
    applier.want(wanted(infra))
    await until(lambda: applier.settled, "made")


@contextlib.asynccontextmanager
async def handed_over(server: Lagging) -> AsyncIterator[Applier]:
    async with scripted(server.serve) as kube:
        holdings = Inventory(kube, PLACE, ("ns",))
        applier = Applier(kube, holdings, PLACE.identity, lambda: True)
        async with running(holdings.run(), applier.run()):
            yield applier


async def test_replicas_are_handed_over_once_and_as_they_are() -> None:
    """Whether the watch has brought the last write or not."""
    server = Lagging()
    async with handed_over(server) as applier:
        await made(applier, msgspec.structs.replace(FLEET, replicas=5))
        await made(applier, scaled())
        assert server.handed == [{"replicas": 5}]
        assert server.replicas == 5
        server.take({"replicas": 8}, "hpa")
        await made(applier, scaled(workers=3))
        assert len(server.handed) == 1 and server.replicas == 8


async def test_replicas_of_a_write_whose_answer_was_lost_are_handed_over() -> None:
    server = Lagging()
    async with handed_over(server) as applier:
        await made(applier, scaled())
        server.take({"replicas": 8}, "hpa")
        server.loses_answers = 1
        applier.want(wanted(msgspec.structs.replace(FLEET, replicas=5)))
        await until(lambda: not server.loses_answers, "written, and not known of")
        await made(applier, scaled(workers=3))
        assert server.replicas == 5 and {"replicas": 5} in server.handed


async def test_a_fleet_that_somebody_deleted_is_made_with_its_autoscaler() -> None:
    server = Lagging()
    async with handed_over(server) as applier:
        await made(applier, msgspec.structs.replace(FLEET, replicas=5))
        server.there.clear()
        server.owners.clear()
        await made(applier, scaled())
        assert not server.handed
        assert any(one["kind"] == "Deployment" for one in server.there.values())


async def test_ports_count_once_they_are_on_the_service() -> None:
    """Applied is not enough: what a fleet has taken over is judged by what is there."""
    ports = (ir.InfraPort("http-80", 80, 10080), ir.InfraPort("udp-80", 80, 10080, "UDP"))
    more = msgspec.structs.replace(FLEET, ports=ports)
    server, open_ = Server(), asyncio.Event()
    (changed,) = (live(one, 99) for one in rendered(more) if one["kind"] == "Service")

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query and "services" in request.path.split("/"):
            await open_.wait()
            return await stream(request, event("MODIFIED", changed))
        return await server.serve(request)

    async with scripted(serve) as kube:
        holdings = Inventory(kube, PLACE, ("ns",))
        applier = Applier(kube, holdings, PLACE.identity, lambda: True)
        observer = Observer(holdings)
        changes: list[tuple[tuple[ir.Transport, int], ...]] = []
        observer.on_change = lambda: changes.append(observer.states()[0].ports)
        applier.want(wanted(more))
        async with running(holdings.run(), applier.run()):
            await until(lambda: applier.settled and applier.applied, "applied")
            assert changes[-1] == ()
            open_.set()
            await until(lambda: changes[-1] == (("TCP", 80), ("UDP", 80)), "seen")
