"""Clusters of objects that an API server let in."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.translate import Settings, translate
from tests.support.manifest import manifest
from tests.translate import world

pytestmark = pytest.mark.pure


def test_an_endpoint_without_an_address_is_told_and_left_out() -> None:
    raw: dict[str, Any] = manifest(
        "EndpointSlice default/web-1",
        labels={"kubernetes.io/service-name": "web"},
        addressType="IPv4",
        endpoints=[{"addresses": []}, {"addresses": ["10.0.0.1"]}],
        ports=[{"port": 8080}],
    )
    slices = decode_api_object(raw, "EndpointSlice")
    made = translate(world.many(1).replace([slices]), Settings())
    (cluster,) = made.ir.fleets[0].clusters
    assert [one.address for one in cluster.endpoints] == ["10.0.0.1"]
    assert any("endpoints[0].addresses[0]" in one.text() for one in made.problems)
