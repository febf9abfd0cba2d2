"""Tidings: warnings about fields, which no condition tells, are Events beside their objects; so many and no more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from controller import event_reports, parentless_routes
from controller.config import ConfigFile
from controller.event_reports import _WARNINGS, EventReports
from controller.events import AGAIN, About, Events
from controller.kube.cache import Cache
from controller.kube.errors import ApiError
from controller.parentless_routes import SETTLED, ParentlessRoutes
from controller.pipeline import Outcome
from edgefast.api.decode.decode import decode_documents
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import IngressSettings, Settings
from tests.translate import world

pytestmark = pytest.mark.pure


class Told(Events):
    """What would be written."""

    def __init__(self) -> None:
        super().__init__(lambda manifest: asyncio.sleep(0), lambda: self.leads, "me")
        self.leads = True
        self.told: list[tuple[About, str, str]] = []

    def warn(self, about: About, reason: str, text: str) -> None:
        self.told.append((about, reason, text))

    def is_reported(self, about: About, reason: str, text: str) -> bool:
        return (about, reason, text) in self.told


def tell(
    *objects: Object, settings: Settings | None = None, events: Told | None = None
) -> list[tuple[About, str, str]]:
    events = events or Told()
    cache = cast(Cache, SimpleNamespace(present=lambda ref: SimpleNamespace(uid=f"uid-{ref.name}")))
    translation = translate(Snapshot.of(objects), settings or Settings(standalone=False))
    outcome = Outcome(revision=1, translation=translation, shards={}, changed=frozenset())
    asyncio.run(EventReports(events, cache, ("edge", "config")).on_outcome(outcome))
    return events.told


def default_gateway(name: str = "gw", **fields: Any) -> Object:
    made = world.gateway(name)
    assert isinstance(made, Gateway)
    return msgspec.structs.replace(
        made, spec=msgspec.structs.replace(made.spec, default_scope="All", **fields)
    )


def test_a_field_that_is_not_available_is_reported_beside_its_object() -> None:
    ((about, reason, text),) = tell(world.gateway_class(), default_gateway())
    assert about == About(world.GATEWAY, "Gateway", "default", "gw", "uid-gw")
    assert reason == "NotSupported"
    assert text.startswith("Gateway default/gw spec.defaultScope: NotSupported default Gateways")


def test_annotations_that_nobody_applies_are_one_event_of_their_object() -> None:
    route = world.route(0)
    asked = {f"nginx.ingress.kubernetes.io/{one}": "secret" for one in ("auth-url", "satisfy")}
    route = msgspec.structs.replace(
        route, metadata=msgspec.structs.replace(route.metadata, annotations=asked)
    )
    served = (world.service("web"), world.endpoints("web", "10.0.0.1"))
    ((about, reason, text),) = tell(world.gateway_class(), world.gateway(), route, *served)
    assert (about.kind, about.name, reason) == ("HTTPRoute", "r0", "PolicyIgnored")
    assert "requests pass WITHOUT auth-url, satisfy" in text and "secret" not in text


def test_what_a_condition_tells_is_not_told_twice() -> None:
    """A backend without endpoints is a warning, too; statuses and their Events have it."""
    route = world.route(0)
    translation = translate(
        Snapshot.of([world.gateway_class(), world.gateway(), route, world.service("web")]),
        Settings(standalone=False),
    )
    assert "EndpointsNotFound" in {one.reason for one in translation.problems}
    assert tell(world.gateway_class(), world.gateway(), route, world.service("web")) == []


def test_many_warnings_leave_room_for_what_is_bad() -> None:
    gateways = [default_gateway(f"gw{number:02}") for number in range(_WARNINGS * 2)]
    assert len(tell(world.gateway_class(), *gateways)) == _WARNINGS


def test_a_namespace_with_many_warnings_keeps_no_other_ones_out() -> None:
    many = [default_gateway(f"gw{number:02}") for number in range(_WARNINGS * 2)]
    made = default_gateway("late")
    other = msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, namespace="zoo")
    )
    told = [about for about, *_ in tell(world.gateway_class(), *many, other)]
    assert len(told) == _WARNINGS and "zoo" in {about.namespace for about in told}


def ingresses(count: int, *notes: str) -> list[Object]:
    annotations = ", ".join(f"nginx.ingress.kubernetes.io/{one}" for one in notes)
    texts = [
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\n"
        f"metadata: {{name: i{number}, namespace: app, annotations: {{{annotations}}}}}\n"
        f"spec: {{ingressClassName: ours, rules: [{{host: h{number}.test}}]}}\n"
        for number in range(count)
    ]
    return [one.obj for one in decode_documents("---\n".join(texts).encode(), "a.yaml").objects]


def test_problems_of_ingresses_are_told_bit_by_bit_errors_first() -> None:
    ours = IngressSettings(enabled=True, classes=("ours",))
    settings = Settings(standalone=False, ingress=ours)
    notes = ("app-root: /$x", "load-balance: ewma")
    events = Told()
    objects = ingresses(_WARNINGS, *notes)
    tell(*objects, settings=settings, events=events)
    assert len(events.told) == _WARNINGS
    assert {about.kind for about, _, _ in events.told} == {"Ingress"}
    assert all("app-root" in text for _, _, text in events.told)
    tell(*objects, settings=settings, events=events)
    assert len(events.told) == 2 * _WARNINGS
    assert all("load-balance" in text for _, _, text in events.told[_WARNINGS:])
    tell(*objects, settings=settings, events=events)
    assert len(events.told) == 2 * _WARNINGS


def test_a_route_whose_gateway_does_not_exist_is_reported_once_after_a_while() -> None:
    def outcome(*objects: Object, **settings: Any) -> Outcome:
        made = translate(Snapshot.of(objects), Settings(standalone=False, **settings))
        return Outcome(revision=1, translation=made, shards={}, changed=frozenset())

    now = [0.0]
    seen = ParentlessRoutes(lambda: now[0])

    def look(outcome: Outcome) -> list[str]:
        return [one.text() for _, one in asyncio.run(seen.look(outcome))]

    alone = outcome(world.gateway_class(), world.route(0))
    assert look(alone) == []
    now[0] = SETTLED
    (said,) = look(outcome(world.gateway_class(), world.route(0)))  # another run, the same route
    assert said == (
        "HTTPRoute default/r0 spec.parentRefs[0]: NotFound Gateway default/gw not found; no request reaches the route "
        "through it, create the Gateway, or correct the reference"
    )
    assert look(alone) == []  # once
    now[0] += AGAIN
    assert look(alone) == [said]
    # The Gateway exists, is of another class, or is not watched: nothing is missing.
    for fine in (
        outcome(world.gateway_class(), world.gateway(), world.route(0)),
        outcome(world.gateway(), world.route(0)),
        outcome(world.route(0), watch_namespaces=("other",)),
    ):
        fresh = ParentlessRoutes(lambda: now[0])
        asyncio.run(fresh.look(fine))
        assert not fresh._due


def test_routes_are_searched_for_missing_gateways_only_when_something_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches: list[Outcome] = []
    monkeypatch.setattr(
        parentless_routes,
        "find_parentless",
        lambda outcome: (searches.append(outcome), iter(()))[1],
    )
    snapshot = Snapshot.of([world.gateway_class(), world.route(0)])
    settings = Settings(standalone=False)
    made, seen = None, ParentlessRoutes()
    counts = []
    for changed in (
        world.service("web"),
        world.endpoints("web", "10.0.0.1"),
        world.endpoints("web", "10.0.0.2"),
        world.route(1),
        world.gateway(),
        world.namespace("fresh", team="red"),
        world.endpoints("web", "10.0.0.3"),
    ):
        snapshot = snapshot.replace([changed])
        made = translate(snapshot, settings, made)
        outcome = Outcome(revision=1, translation=made, shards={}, changed=frozenset())
        asyncio.run(seen.look(outcome))
        counts.append(len(searches))
    assert counts == [1, 1, 1, 2, 3, 4, 4]


async def test_an_outcome_is_looked_at_once_by_the_leader_alone_and_a_fault_of_it_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_reports, "_LOOK", 0.001)
    looked: list[object] = []
    events = Told()
    events.leads = False

    class Noting(EventReports):
        async def on_outcome(self, outcome: Outcome) -> None:
            looked.append(outcome)
            raise ValueError("a fault of ours")

    first, second = (cast(Outcome, object()) for _ in range(2))
    now = [first]
    asked = asyncio.Semaphore(0)

    def outcome() -> Outcome:
        asked.release()
        return now[0]

    async def looks(count: int) -> None:
        for _ in range(count):
            await asked.acquire()

    file = cast(ConfigFile, SimpleNamespace(refusals=0, problems=()))
    cache = SimpleNamespace(retained={})
    told = Noting(events, cast(Cache, cache), ("edge", "config"))
    told._parentless = cast(
        ParentlessRoutes, SimpleNamespace(look=lambda outcome: asyncio.sleep(0, []))
    )

    def fail(outcome: Outcome) -> Any:
        raise ValueError("a fault of ours")

    task = asyncio.create_task(told.follow(file, outcome))
    await looks(3)
    assert looked == []
    events.leads = True
    await looks(4)
    assert looked == [first]
    now[0] = second
    await looks(4)
    assert looked == [first, second]
    assert not task.done() and not events.told
    cache.retained = {"SecurityPolicy": 2}
    await looks(4)
    ((about, reason, text),) = events.told
    assert (about.kind, about.name, reason) == ("ConfigMap", "config", "KindRemoved")
    assert text.startswith("kind SecurityPolicy: its CRD was removed while objects of it")
    cache.retained = {"SecurityPolicy": 1}  # a count changes with each object: no Event
    await looks(4)
    assert len(events.told) == 1
    # An exception in one source of Events ends neither the others nor the task.
    told._parentless = cast(ParentlessRoutes, SimpleNamespace(look=fail))
    await looks(4)
    said = 'User "u" cannot list resource "pods" in API group ""'
    told.denials.fail("GET", "/api/v1/pods", False, ApiError(403, "Forbidden", said))
    await looks(4)
    (_, (about, reason, text)) = events.told
    assert (about.kind, reason) == ("ConfigMap", "AccessDenied") and "verb list" in text
    task.cancel()
