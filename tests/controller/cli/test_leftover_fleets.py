"""Leftovers: whose fleets are answered for, under the name that the configuration has."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cli.leftover_fleets import find_served
from controller.fleets.fleet_owner import Owner
from edgefast.translate.fleet.fleet import label_value

pytestmark = pytest.mark.pure

CLASSES = [
    {"metadata": {"name": name}, "spec": {"controllerName": controller}}
    for name, controller in (("ours", "example.com/us"), ("theirs", "example.com/them"))
]


def gateway(name: str, class_name: str, namespace: str = "shop") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"metadata": meta, "spec": {"gatewayClassName": class_name}}


def test_gateways_of_our_classes_are_served_on_their_own_and_merged() -> None:
    long = "g" * 80
    found = find_served(
        "example.com/us",
        CLASSES,
        [
            gateway("a", "ours"),
            gateway(long, "ours", "b"),
            gateway("c", "theirs"),
            gateway("d", "no"),
        ],
    )
    assert found == {
        Owner("shop", "a"),
        Owner("b", label_value(long)),
        Owner("", "", "ours"),
        Owner("shop", "", "ours"),
        Owner("b", "", "ours"),
    }


def test_without_a_name_every_gateway_that_is_there_may_be_served() -> None:
    found = find_served("", CLASSES, [gateway("c", "theirs"), gateway("d", "no")])
    assert Owner("shop", "c") in found and Owner("shop", "d") not in found
