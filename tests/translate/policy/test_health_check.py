"""Health checks of API objects, which a schema of another release may have let in with any number."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.table.compile import compile_fleet
from edgefast.translate import Settings, translate
from tests.support.manifest import manifest
from tests.translate import world

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("port", [0, -1, 65536, 10**30])
def test_a_port_that_is_none_closes_the_policy(port: int) -> None:
    raw: dict[str, Any] = manifest(
        "BackendTrafficPolicy default/p",
        {
            "targetRefs": [{"group": "", "kind": "Service", "name": "web"}],
            "healthCheck": {"active": {"type": "TCP", "overrides": {"port": port}}},
        },
    )
    policy = decode_api_object(raw, "BackendTrafficPolicy")
    made = translate(world.many(1).replace([policy]), Settings())
    (unit,) = made.ir.fleets[0].policies
    assert unit.status == 500 and f"overrides.port: Invalid {port} (expected" in unit.reason
    assert compile_fleet(made.ir.fleets[0]).resources
