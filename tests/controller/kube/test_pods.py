"""Pods: what XBackends select is followed, by one watch for each set of labels; who serves, who leaves, and what cannot be read."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from controller.kube.pace import Pace
from controller.kube.pods import Pods, list_pods
from controller.kube.references import referenced, selected
from controller.kube.reflector import Item
from edgefast.resources.decode.decode import decode_documents
from edgefast.resources.kubernetes.selectedpod import SelectedPod
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.backend.podselectors import MOST
from edgefast.translate.settings import Settings

from .script import event, failure, obj, page, scripted, stream
from .waiting import run, running, until

QUICK = Pace(backoff_first=0.001, backoff_most=0.01, silence=5.0, patience=0.2)
WEB = ("ns", "app=web")


def pod(name: str, version: int, address: str, ready: str = "True", **meta: Any) -> dict[str, Any]:
    status = {
        "podIP": address,
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": ready}],
    }
    made = obj(name, version, status=status)
    made["metadata"].update(meta)
    return made


def test_pods_come_and_go() -> None:
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

    async def test() -> None:
        async with scripted(serve) as kube:
            pods = Pods(kube, lambda: changes.append(1), QUICK)
            async with running(pods.run()):
                assert not pods.want({WEB})
                both = (
                    SelectedPod(address="10.0.0.1", leaving=True),
                    SelectedPod(address="10.0.0.2"),
                )
                await until(lambda: pods.table().get(WEB) == both, "followed")
                assert pods.want({WEB})
                assert pods.table() is pods.table()
                assert len(changes) == 3  # the list, b, a; labels are nobody's business
                assert pods.want(frozenset()) and WEB not in pods.table()
                assert not pods.selections

    run(test())
    assert set(asked) == {("/api/v1/namespaces/ns/pods", "app=web")}


def test_what_may_not_be_read_holds_nothing_up() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return failure(403, "Forbidden")

    async def test() -> None:
        async with scripted(serve) as kube:
            pods = Pods(kube, lambda: None, QUICK)
            async with running(pods.run()):
                pods.want({WEB})
                await until(lambda: pods.want({WEB}), "answered")
                assert list(pods.problems) == ["pods.v1 in ns (app=web)"]
                assert not pods.table()
            table, refused = await list_pods(kube, {WEB})
            assert not table and refused.keys() == {WEB}

    run(test())


def test_a_watch_that_was_replaced_says_nothing_any_more() -> None:
    async def test() -> None:
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
                assert len(lists) == 2 and not pods.table()

    run(test())


def _backend(at: int, spec: str, namespace: str = "apps") -> str:
    return f"""
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackend
metadata: {{name: b{at:02}, namespace: {namespace}}}
spec: {spec}
"""


def test_what_is_selected_and_referred_to() -> None:
    by = "{{type: EndpointSelector, port: {{number: 80}}, endpointSelector: {{matchLabels: {{app: {}, at: x}}}}}}"
    tls = (
        "{type: ExternalHostname, port: {number: 80}, externalHostname: {hostname: a.example.com}, tls: {mode: ClientAndServer, "
        'clientCertificateRef: {name: mine}, validation: {hostname: a.example.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}'
    )
    text = "---".join(
        [*(_backend(at, by.format(f"a{at % 20:02}")) for at in range(40)), _backend(40, tls)]
    )
    decoded = decode_documents(text.encode(), "x.yaml")
    assert not decoded.problems
    found = Snapshot.of(decoded.objects)
    settings = Settings(standalone=False)
    wanted = selected(found, settings)
    assert wanted == {("apps", f"app=a{at:02},at=x") for at in range(MOST)}
    assert referenced(found, settings) == {("ConfigMap", "apps", "ca"), ("Secret", "apps", "mine")}
    off = msgspec.structs.replace(settings, enable_x_backend=False)
    assert not selected(found, off) and not referenced(found, off)
