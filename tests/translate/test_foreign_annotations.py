"""Annotations of other projects on what is served: told, in no condition, and for next to nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.grpcroute import GRPCRoute
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.kinds import Object
from edgefast.api.migration.ingress_nginx import INGRESS_NGINX
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.translate import Settings, Translation, translate
from tests.translate import world
from tests.translate.test_speed import PER_ROUTE, count_calls

pytestmark = pytest.mark.pure

NGINX = "nginx.ingress.kubernetes.io"
CLUSTER = Settings(standalone=False)


def annotate(obj: Object, *names: str) -> Any:
    asked = {f"{NGINX}/{one}": "hunter2" for one in names}
    return msgspec.structs.replace(
        obj, metadata=msgspec.structs.replace(obj.metadata, annotations=asked)
    )


def grpc_route() -> Object:
    return world.make(
        "GRPCRoute default/calls",
        {
            "parentRefs": [{"name": "gw"}],
            "hostnames": ["calls.example.com"],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        },
    )


def snapshot(*objects: Object) -> Snapshot:
    others = [world.gateway_class(), world.service("web"), world.endpoints("web", "10.0.0.1")]
    if not any(isinstance(one, Gateway) for one in objects):
        others.append(world.gateway())
    return Snapshot.of([*others, *objects])


def ignored(translation: Translation) -> list[Problem]:
    return [one for one in translation.problems if one.reason == "PolicyIgnored"]


@pytest.mark.parametrize("made", [world.route(0), grpc_route(), world.gateway()])
def test_each_kind_that_is_served_is_told(made: Object) -> None:
    objects = [annotate(made, "auth-url", "app-root")]
    objects += [] if isinstance(made, HTTPRoute | GRPCRoute) else [world.route(0)]
    settings = Settings(ignore_foreign_policies=True)
    guard, other = ignored(translate(snapshot(*objects), settings))
    assert guard.object is not None and guard.object.kind == type(made).__name__
    assert (guard.path, guard.severity) == (f"metadata.annotations[{NGINX}/auth-url]", "error")
    assert (other.path, other.severity) == (f"metadata.annotations[{NGINX}/app-root]", "warning")
    assert guard.message == "requests pass WITHOUT it"
    assert "auth-url: use SecurityPolicy spec.extAuth.http" in guard.hint
    assert "hunter2" not in guard.text() + other.text()


@pytest.mark.parametrize("standalone", [True, False])
def test_no_condition_speaks_of_them(standalone: bool) -> None:
    settings = Settings(standalone=standalone)
    names = ("auth-url", "app-root", "whatever")
    plain = [world.gateway(), world.route(0), grpc_route()]
    annotated = [annotate(one, *names) for one in plain]
    before, after = (translate(snapshot(*one), settings) for one in (plain, annotated))
    assert before.statuses == after.statuses and before.ir == after.ir
    assert ignored(after) and not ignored(before)


def test_in_a_cluster_one_warning_says_it() -> None:
    names = ("limit-rps", "app-root", "auth-url", "whatever")
    (one,) = ignored(translate(snapshot(annotate(world.route(0), *names)), CLUSTER))
    assert (one.severity, one.path) == ("warning", "metadata.annotations")
    assert one.text() == (
        "HTTPRoute default/r0 metadata.annotations: PolicyIgnored requests pass WITHOUT "
        "auth-url, limit-rps, whatever; app-root have no effect, annotations of ingress-nginx "
        "are not applied, see edgefast docs migrating"
    )


@pytest.mark.parametrize("settings", [Settings(), CLUSTER])
def test_many_are_bounded(settings: Settings) -> None:
    route = annotate(world.route(0), *(f"x{at:03}" for at in range(100)))
    found = ignored(translate(snapshot(route), settings))
    assert len(found) == (33 if settings.standalone else 1)
    assert "68 more are not applied" in found[-1].text()
    assert {one.severity for one in found} == {"error" if settings.standalone else "warning"}


def test_those_that_are_not_told_one_by_one_are_as_grave_as_they_may_be() -> None:
    table = INGRESS_NGINX.annotations
    assert table is not None
    route = annotate(world.route(0), "auth-url", *table.others)
    *_, last = ignored(translate(snapshot(route), Settings()))
    assert last.severity == "warning"
    assert f"{len(table.others) - 31} more are not applied" in last.text()


def test_of_what_is_not_served_nothing_is_told() -> None:
    lost = annotate(world.route(0, parents=[{"name": "other"}]), "auth-url")
    assert ignored(translate(snapshot(lost), Settings())) == []
    refused = annotate(world.gateway(protocol="SCTP"), "auth-url")
    assert ignored(translate(snapshot(refused), Settings())) == []


def test_an_edit_of_annotations_is_noticed() -> None:
    before = translate(snapshot(annotate(world.route(0), "auth-url")), Settings())
    plain = before.memo.world.snapshot.replace([world.route(0)])
    after = translate(plain, Settings(), before)
    assert ignored(before) and not ignored(after)
    assert before.ir == after.ir


def test_a_route_without_them_costs_nothing() -> None:
    """kubectl leaves an annotation on whatever it has applied."""
    plain = world.many(200)
    note = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    applied = plain.replace(
        [
            msgspec.structs.replace(
                one, metadata=msgspec.structs.replace(one.metadata, annotations=note)
            )
            for one in plain.http_routes.values()
        ]
    )
    few = count_calls(lambda: translate(plain, Settings()))
    many = count_calls(lambda: translate(applied, Settings()))
    assert many - few <= 200 * 5 < 200 * PER_ROUTE / 50
