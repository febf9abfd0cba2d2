"""An edited policy of very many routes: one resource is sent, no route is translated, and nobody waits for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from edgefast.api.kinds import Object
from edgefast.providers.files import FileSource
from edgefast.table import compile_fleet
from edgefast.table.shards import diff
from edgefast.translate import Settings, translate
from tests.controller.pipeline.running import many, running_pipeline
from tests.support.documents import backend
from tests.support.manifest import manifest
from tests.translate import world
from tests.translate.gateway_text import gateway

EDITS = 9
#: Of the time of a start with 10,000 routes, that of an edit, at most.
PART = 1 / 20


Make = Callable[[int], tuple[dict[str, Any], str]]  # number of an edit -> policy, its one unit


def policy(kind: str, **spec: Any) -> dict[str, Any]:
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    return manifest(
        f"{kind} default/p", {"targetRefs": [target], **spec}, api="gateway.edge.io/v1alpha1"
    )


def admits(number: int) -> tuple[dict[str, Any], str]:
    """Other addresses each time."""
    rule = {"action": "Allow", "principal": {"clientCIDRs": [f"10.{number}.0.0/16"]}}
    made = policy("SecurityPolicy", authorization={"rules": [rule]})
    return made, "security/default/p#authorization"


def checks(number: int) -> tuple[dict[str, Any], str]:
    """A check each other time."""
    health = {"panicThreshold": 30}
    if number % 2:
        health |= {"active": {"type": "TCP", "tcp": {}}}
    return policy("BackendTrafficPolicy", healthCheck=health), "traffic/default/p"


BASE = gateway("name: http, port: 80, protocol: HTTP") + backend("web")


def route(at: int) -> dict[str, Any]:
    spec = {
        "parentRefs": [{"name": "gw"}],
        "hostnames": [f"h{at}.example.com"],
        "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
    }
    return manifest(f"HTTPRoute r{at}", spec)


async def edit_objects(routes: int, make: Make) -> list[float]:
    """Seconds of the controller's pipeline for its start, then for each edit."""
    taken: list[float] = []
    async with running_pipeline(many(routes)) as made:
        began = time.perf_counter()
        await made.wait_for(1)
        taken.append(time.perf_counter() - began)
        for number in range(EDITS):
            raw, name = make(number)
            edited: Object = world.make(raw)
            before = made.kept.outcomes[-1]
            began = time.perf_counter()
            after = await made.change(edited)
            spent = time.perf_counter() - began
            (fleet,) = after.shards
            delta = diff(before.shards[fleet], after.shards[fleet])
            if number:  # the first one brings it, and all routes name it from then on
                assert [one.name for one in delta.put] == [name] and not delta.remove
                assert after.translation.work.routes == 0
                assert after.translation.work.policies == 1
                taken.append(spent)
    return taken


def edit_files(routes: int, folder: Path, make: Make) -> list[float]:
    """Seconds of the files' pipeline (read, translate, compile, compare) for its start, then for each edit."""
    items = json.dumps([route(at) for at in range(routes)])
    (folder / "all.yaml").write_text(f"{BASE}---\napiVersion: v1\nkind: List\nitems: {items}\n")
    file = folder / "policy.json"
    file.write_text(json.dumps(make(0)[0]))
    source, settings = FileSource([folder]), Settings()
    began = time.perf_counter()
    made = translate(source.read().snapshot, settings)
    shards = compile_fleet(made.ir.fleets[0])
    taken = [time.perf_counter() - began]
    for number in range(1, EDITS):
        raw, name = make(number)
        file.write_text(json.dumps(raw))
        began = time.perf_counter()
        made = translate(source.read().snapshot, settings, made)
        after = compile_fleet(made.ir.fleets[0], shards)
        delta = diff(shards, after)
        taken.append(time.perf_counter() - began)
        assert [one.name for one in delta.put] == [name] and not delta.remove
        assert (made.work.routes, made.work.policies) == (0, 1)
        shards = after
    return taken


@pytest.mark.pure
@pytest.mark.parametrize("make", [admits, checks])
async def test_one_resource_is_sent_and_no_route_translated(make: Make, tmp_path: Path) -> None:
    await edit_objects(200, make)
    edit_files(200, tmp_path, make)


@pytest.mark.heavy
@pytest.mark.parametrize("make", [admits, checks])
async def test_ten_thousand_routes_wait_for_nothing(make: Make, tmp_path: Path) -> None:
    objects, files = await edit_objects(10_000, make), edit_files(10_000, tmp_path, make)
    for name, (start, *edits) in (("controller", objects), ("files", files)):
        shown = ", ".join(f"{one * 1e3:.1f}" for one in edits)
        assert median(edits) < start * PART, f"{name}: {shown} ms, a start {start * 1e3:.0f} ms"
