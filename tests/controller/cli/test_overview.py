"""make_overview: what statuses say, each bad condition once, nothing of what nobody has said."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cli.overview import make_ingress_rows, make_overview
from edgefast.cli.status_model import (
    ClassRow,
    GatewayRow,
    ListenerRow,
    ListenerSetRow,
    ProblemRow,
    RouteRow,
)

pytestmark = pytest.mark.pure


def condition(type_: str, status: str, reason: str = "R", message: str = "m") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


CLASS: dict[str, Any] = {
    "metadata": {"name": "edge"},
    "spec": {"controllerName": "example.com/x"},
    "status": {"conditions": [condition("Accepted", "True")]},
}
GATEWAY: dict[str, Any] = {
    "metadata": {"name": "gw", "namespace": "shop"},
    "spec": {
        "gatewayClassName": "edge",
        "listeners": [
            {"name": "http", "port": 80, "protocol": "HTTP"},
            {"name": "tls", "port": 443, "protocol": "HTTPS", "hostname": "a.example.com"},
        ],
    },
    "status": {
        "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
        "conditions": [condition("Accepted", "True"), condition("Programmed", "False", "Invalid")],
        "listeners": [
            {"name": "http", "attachedRoutes": 3, "conditions": [condition("Programmed", "True")]},
            {
                "name": "tls",
                "attachedRoutes": 0,
                "conditions": [condition("Conflicted", "True", "HostnameConflict", "taken")],
            },
        ],
    },
}


def test_rows() -> None:
    made = make_overview([CLASS], [GATEWAY], [])
    assert made.gateways == (
        GatewayRow(
            name="shop/gw",
            gateway_class="edge",
            addresses=("192.0.2.1",),
            accepted="True",
            programmed="False",
        ),
    )
    assert made.listeners == (
        ListenerRow(
            gateway="shop/gw", name="http", port=80, protocol="HTTP", routes=3, programmed="True"
        ),
        ListenerRow(
            gateway="shop/gw",
            name="tls",
            port=443,
            protocol="HTTPS",
            hostname="a.example.com",
            routes=0,
        ),
    )
    assert made.problems == (
        ProblemRow(object="Gateway shop/gw", condition="Programmed", reason="Invalid", message="m"),
        ProblemRow(
            object="Gateway shop/gw listener tls",
            condition="Conflicted",
            reason="HostnameConflict",
            message="taken",
        ),
    )


def test_routes_have_a_row_for_each_parent() -> None:
    route = {
        "metadata": {"name": "r", "namespace": "shop"},
        "spec": {"hostnames": ["a.example.com", "b.example.com"]},
        "status": {
            "parents": [
                {
                    "parentRef": {"name": "gw", "namespace": "infra", "sectionName": "http"},
                    "conditions": [condition("Accepted", "True")],
                },
                {
                    "parentRef": {"name": "other", "port": 81},
                    "conditions": [condition("Accepted", "False", "NoMatchingParent", "no")],
                },
            ]
        },
    }
    made = make_overview([], [], [route], namespace="elsewhere")
    hosts = ("a.example.com", "b.example.com")
    assert made.routes == (
        RouteRow(name="shop/r", hostnames=hosts, parent="infra/gw#http", accepted="True"),
        RouteRow(name="shop/r", hostnames=hosts, parent="other:81", accepted="False"),
    )
    assert [one.object for one in made.problems] == ["HTTPRoute shop/r at other:81"]


def test_listener_sets_and_policies() -> None:
    """Listeners that other teams add stand among their Gateway's, and their problems among all."""
    more = {
        "metadata": {"name": "more", "namespace": "team"},
        "spec": {
            "parentRef": {"name": "gw", "namespace": "shop"},
            "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}],
        },
        "status": {
            "conditions": [condition("Accepted", "False", "NotAllowed", "not from here")],
            "listeners": [
                {"name": "a", "attachedRoutes": 1, "conditions": [condition("Programmed", "True")]}
            ],
        },
    }
    policy = {
        "metadata": {"name": "tls", "namespace": "team"},
        "spec": {},
        "status": {
            "ancestors": [
                {
                    "ancestorRef": {"name": "gw", "namespace": "shop"},
                    "conditions": [condition("Accepted", "False", "NoValidCACertificate", "none")],
                }
            ]
        },
    }
    own = {"metadata": {"name": "own", "namespace": "team"}, "spec": {"parentRef": {"name": "gw"}}}
    made = make_overview([], [], [], [more, own], [policy], {}, {"SecurityPolicy": [policy]})
    assert made.listener_sets == (
        ListenerSetRow(name="team/more", gateway="shop/gw", accepted="False"),
        ListenerSetRow(name="team/own", gateway="team/gw"),
    )
    (row,) = made.listeners
    assert (row.gateway, row.name, row.routes) == ("shop/gw", "team/more/a", 1)
    assert [(one.object, one.reason) for one in made.problems] == [
        ("ListenerSet team/more", "NotAllowed"),
        ("BackendTLSPolicy team/tls at shop/gw", "NoValidCACertificate"),
        ("SecurityPolicy team/tls at shop/gw", "NoValidCACertificate"),
    ]


def test_what_nobody_has_looked_at_is_no_verdict() -> None:
    pending = condition("Accepted", "Unknown", "Pending", "Waiting for controller")
    gateway_class = {
        "metadata": {"name": "edge"},
        "spec": {"controllerName": "example.com/x"},
        "status": {"conditions": [pending]},
    }
    bare = {"metadata": {"name": "r", "namespace": "shop"}, "spec": {}}
    made = make_overview([gateway_class], [], [bare])
    assert made.classes == (ClassRow(name="edge", controller="example.com/x", accepted=""),)
    assert made.routes == (RouteRow(name="shop/r"),)
    assert [one.reason for one in made.problems] == ["Pending"]


def test_what_a_controller_answers_for_no_more_is_unknown_and_a_problem() -> None:
    """It was served once, and its fleet serves on; that must not look like an object that nobody has seen."""
    said = "namespace shop is not watched; fleet x/edge serves its last table"
    told = [
        {**condition(type_, "Unknown", "Pending", said), "observedGeneration": 2}
        for type_ in ("Accepted", "Programmed")
    ]
    gateway = {
        "metadata": {"name": "edge", "namespace": "shop"},
        "spec": {"gatewayClassName": "edge", "listeners": []},
        "status": {"conditions": told, "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}]},
    }
    made = make_overview([CLASS], [gateway], [])
    (row,) = made.gateways
    assert (row.accepted, row.programmed, row.addresses) == ("Unknown", "Unknown", ("192.0.2.1",))
    assert [one.message for one in made.problems] == [said, said]


@pytest.mark.parametrize("namespace", [None, "shop"])
def test_what_no_controller_can_write_is_found(namespace: str | None) -> None:
    """References to a Gateway or a class that does not exist, and a class without a controller."""

    def route(route_name: str, **ref: str) -> dict[str, Any]:
        return {
            "metadata": {"name": route_name, "namespace": "shop"},
            "spec": {"parentRefs": [{"name": "gw", **ref}]},
        }

    lone = {"metadata": {"name": "edge"}, "spec": {"controllerName": "example.com/none"}}
    gateway = {
        "metadata": {"name": "gw", "namespace": "shop"},
        "spec": {"gatewayClassName": "edeg", "listeners": []},
    }
    routes = [
        route("good"),
        route("wrong", name="gone"),
        route("far", namespace="infra"),
        route("set", kind="ListenerSet", name="gone"),
    ]
    made = make_overview([lone], [gateway], routes, namespace=namespace)
    found = {one.object: one for one in made.problems}
    assert found["GatewayClass edge"].message.startswith(
        "spec.controllerName: no controller example.com/none has accepted the class"
    )
    assert "GatewayClass edeg not found" in found["Gateway shop/gw"].message
    assert "Gateway shop/gone not found" in found["HTTPRoute shop/wrong"].message
    # Of one namespace's Gateways alone it cannot be said whether that of another one exists.
    assert ("HTTPRoute shop/far" in found) == (namespace is None)
    assert len(found) == (4 if namespace is None else 3)


def test_ingresses_of_all_controllers() -> None:
    ingress = {
        "metadata": {
            "namespace": "app",
            "name": "shop",
            "annotations": {"kubernetes.io/ingress.class": "nginx"},
        },
        "spec": {"rules": [{"host": "a.test"}, {"host": "a.test"}, {}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.test"}]}},
    }
    (row,) = make_ingress_rows([ingress])
    assert (row.name, row.ingress_class, row.hostnames) == ("app/shop", "nginx", ("a.test", "*"))
    assert row.addresses == ("192.0.2.1", "lb.test")
    default = {**ingress, "spec": {"defaultBackend": {"service": {"name": "web"}}}}
    assert make_ingress_rows([default])[0].hostnames == ("*",)
    bare = {"metadata": {"namespace": "app", "name": "bare"}, "spec": {"ingressClassName": "x"}}
    (row,) = make_ingress_rows([bare])
    assert (row.ingress_class, row.hostnames, row.addresses) == ("x", (), ())
