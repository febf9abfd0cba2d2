"""Last words of an installation that is removed: no status goes on with addresses that nobody serves."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cli.leftover_fleets import LeftoverFleets
from controller.cli.status_cleanup import find_stale_status
from controller.fleets.fleet_owner import Owner
from controller.kube.status_author import author_of

pytestmark = pytest.mark.pure

US = author_of("edge-gateway-system.edge-gateway")
NOW = "2026-01-02T03:04:05Z"
ADDRESSES = [{"type": "IPAddress", "value": "192.0.2.1"}]
FLEETS = LeftoverFleets({}, {"system/edge-a": {}}, {"system/edge-a": Owner("shop", "a")})


def written(kind: str, name: str, types: tuple[str, ...], author: str = US) -> dict[str, Any]:
    """An object as an API server has it after a controller has written its status."""
    conditions = [
        {
            "type": one,
            "status": "True",
            "reason": one,
            "message": "",
            "observedGeneration": 3,
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        }
        for one in types
    ]
    marks = {f'k:{{"type":"{one}"}}': {"f:message": {}} for one in types}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "generation": 3,
            "resourceVersion": "7",
            "managedFields": [
                {
                    "manager": author,
                    "subresource": "status",
                    "fieldsV1": {"f:status": {"f:conditions": marks}},
                }
            ],
        },
        "spec": {"gatewayClassName": "edge"},
        "status": {"conditions": conditions, "addresses": ADDRESSES, "listeners": []},
    }


BOTH = ("Accepted", "Programmed")


@pytest.mark.parametrize(
    ("name", "addresses", "said"),
    [
        ("a", None, "fleet system/edge-a serves its last table"),
        ("b", [], "this controller does not serve it"),
    ],
)
def test_addresses_stay_where_a_fleet_serves_on(name: str, addresses: Any, said: str) -> None:
    found = find_stale_status("Gateway", written("Gateway", name, BOTH), US, FLEETS, NOW)
    assert found is not None
    assert found.get("addresses") == addresses  # None: as they are
    for one in found["conditions"]:
        assert (one["status"], one["reason"], one["observedGeneration"]) == (
            "Unknown",
            "Pending",
            3,
        )
        assert one["message"].startswith(f"its controller has been uninstalled; {said}")
        assert one["lastTransitionTime"] == NOW


@pytest.mark.parametrize(("kind", "types"), [("ListenerSet", BOTH), ("GatewayClass", BOTH[:1])])
def test_other_kinds(kind: str, types: tuple[str, ...]) -> None:
    found = find_stale_status(kind, written(kind, "a", types), US, FLEETS, NOW)
    assert found is not None
    assert [one["status"] for one in found["conditions"]] == ["Unknown"] * len(types)


@pytest.mark.parametrize("author", ["kubectl", author_of("other.edge-gateway"), "envoy-gateway"])
def test_nothing_is_said_of_what_is_another_ones_word(author: str) -> None:
    gateway = written("Gateway", "b", BOTH, author)
    assert find_stale_status("Gateway", gateway, US, FLEETS, NOW) is None


def test_it_is_said_once() -> None:
    gateway = written("Gateway", "b", BOTH)
    found = find_stale_status("Gateway", gateway, US, FLEETS, NOW)
    gateway["status"] |= found or {}
    assert find_stale_status("Gateway", gateway, US, FLEETS, "2027-01-01T00:00:00Z") is None


def test_ingresses_lose_the_addresses_that_were_written_here() -> None:
    def ingress(author: str) -> dict[str, Any]:
        fields = {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
        mark = {"manager": author, "subresource": "status", "fieldsV1": fields}
        return {
            "metadata": {"name": "i", "namespace": "shop", "managedFields": [mark]},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        }

    none = {"loadBalancer": {"ingress": []}}
    assert find_stale_status("Ingress", ingress(US), US, FLEETS, NOW) == none
    theirs = ingress("nginx-ingress-controller")
    assert find_stale_status("Ingress", theirs, US, FLEETS, NOW) is None
    assert find_stale_status("Ingress", {**ingress(US), "status": {}}, US, FLEETS, NOW) is None
