"""Whatever is broken in one object, no request that it was to answer is answered by something less specific."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgefast import ir
from edgefast.api.decode.decode import DecodeError, close_api_object, decode_api_object
from edgefast.api.kinds import Object
from edgefast.diagnostics.problem import ObjectRef
from edgefast.providers.files import FileSource
from edgefast.table import Request, compile_fleet
from edgefast.table.match import Matcher, find_listener
from edgefast.translate import Settings, Translation, translate
from tests.support.manifest import manifest
from tests.translate import broken_world
from tests.translate.golden import BASES

pytestmark = pytest.mark.pure

BASE: list[broken_world.Object] = [
    manifest(
        "GatewayClass edge",
        {"controllerName": "gateway.edge.io/gatewayclass-controller"},
        api=broken_world.API,
    ),
    manifest(
        "ReferenceGrant default/certificates",
        {
            "from": [
                {"group": "gateway.networking.k8s.io", "kind": kind, "namespace": "other"}
                for kind in ("Gateway", "ListenerSet")
            ],
            "to": [{"group": "", "kind": "Secret"}],
        },
        api=broken_world.API,
    ),
]
REQUESTS = [
    Request(method=method, path=path, headers=headers)
    for path in broken_world.PATHS
    for method in ("GET", "POST")
    for headers in ((), (("x-v", "1"),), (("x-w", "1"),))
]
SEEDS = range(160)
#: A way after which only the beginning of a path is known: what others have below it is theirs (docs/reference/closed.md).
BEGINNING = "a path that no request has"


def _is_of_server(seed: int) -> bool:
    """Tell whether an API server could have the broken object."""
    world = broken_world.make_world(seed)
    return world.twin is None and not world.how.endswith(" version")


WORLDS = [
    *((seed, "files") for seed in SEEDS),
    *((seed, "server") for seed in SEEDS if _is_of_server(seed)),
]


def _take(raw: broken_world.Object) -> Object | None:
    """Take an object of an API server, which lets more through than files do."""
    text, meta = json.dumps(raw).encode(), raw["metadata"]
    try:
        return decode_api_object(text, raw["kind"])
    except DecodeError as error:
        ref = ObjectRef(raw["kind"], meta.get("namespace", ""), meta["name"])
        return close_api_object(text, ref, error)


class Table:
    """A world as it is served."""

    def __init__(self, folder: Path, objects: list[broken_world.Object], origin: str) -> None:
        folder.mkdir()
        (folder / "certificates.yaml").write_text((BASES / "certificates.yaml").read_text())
        if origin == "files":
            (folder / "world.yaml").write_text(broken_world.write([*BASE, *objects]))
        snapshot = FileSource([folder]).read().snapshot
        if origin == "server":
            snapshot = snapshot.replace(filter(None, map(_take, (*BASE, *objects))))
        self.translation: Translation = translate(snapshot, Settings(standalone=True))
        (self.fleet,) = self.translation.ir.fleets
        self._matcher = Matcher(compile_fleet(self.fleet).resources)

    def ask(self, port: int, host: str, request: Request) -> tuple[ir.Listener, ir.Rule] | None:
        """Return the listener and the rule that answer, None when nobody does."""
        listener = find_listener(self.fleet.listeners, port, host)
        if listener is None or (listener.tls is not None and not listener.tls.certificates):
            return None
        hit = self._matcher.match(listener.name, host, request)
        return (listener, hit.rule) if hit is not None and hit.rule.redirect is not None else None


def asks() -> Iterator[tuple[int, str, Request]]:
    for port in (80, 443):
        for host in broken_world.HOSTS:
            for request in REQUESTS:
                yield port, host, request


@pytest.mark.parametrize(("seed", "origin"), WORLDS)
def test_nothing_less_specific_answers_for_what_is_broken(
    tmp_path: Path, seed: int, origin: str
) -> None:
    world = broken_world.make_world(seed)
    whole = Table(tmp_path / "whole", world.whole(), origin)
    hurt = Table(tmp_path / "hurt", world.hurt(), origin)
    name = "/".join(world.broken_key)
    is_route = world.broken["kind"] == "HTTPRoute"
    told = any("be told" in one.message for one in hurt.translation.problems)
    for ask in asks():
        meant, found = whole.ask(*ask), hurt.ask(*ask)
        if meant is None or found is None:
            continue
        owner = meant[1].route if is_route else meant[0].name.rpartition("/")[0]
        if not owner.endswith(name) or _message(meant[1]) == _message(found[1]):
            continue
        if is_route:
            if found[1].route == name or told:
                continue
            if world.how == BEGINNING and world.is_longer(_message(found[1])):
                continue
        else:
            # Of hosts that nobody names a listener holds nothing; a second object of a name nothing that is served already.
            equal = world.twin is not None and meant[0].hostname == found[0].hostname
            if meant[0].hostname == "*" or equal:
                continue
        pytest.fail(f"{world.how}: {ask} of {meant[1].route} on {meant[0].name} go to {found}")


def _message(rule: ir.Rule) -> str:
    assert rule.redirect is not None
    return rule.redirect.hostname or ""


def test_every_way_to_break_something_is_tried() -> None:
    seen = {broken_world.make_world(seed).how for seed in SEEDS}
    ways = {*broken_world.ANY, *(way for ways in broken_world.OF_KIND.values() for way in ways)}
    assert seen == {*ways, broken_world.TWICE}
