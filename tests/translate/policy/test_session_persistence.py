"""Names of headers that sessions may have."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.translate import Settings, translate
from tests.support.manifest import manifest
from tests.translate import world

pytestmark = pytest.mark.pure

TAKEN = """
    accept-encoding access-control-allow-origin authorization cache-control content-encoding content-length Cookie date etag
    grpc-status host if-none-match Location origin proxy-authorization ratelimit-limit retry-after sec-fetch-site server
    set-cookie2 strict-transport-security te traceparent upgrade user-agent vary www-authenticate x-forwarded-for x-request-id
"""


def _is_refused(name: str) -> bool:
    raw: dict[str, Any] = manifest(
        "BackendTrafficPolicy default/p",
        {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}],
            "sessionPersistence": {"type": "Header", "header": {"name": name}},
        },
    )
    policy = decode_api_object(raw, "BackendTrafficPolicy")
    (unit,) = translate(world.many(1).replace([policy]), Settings()).ir.fleets[0].policies
    return unit.status == 500


def test_a_header_that_says_something_else_names_no_session() -> None:
    assert not [name for name in TAKEN.split() if not _is_refused(name)]


def test_a_header_of_nobodys_may() -> None:
    names = ["X-Session", "session", "x-session-id", "cart", "server-id", "my-location"]
    assert not [name for name in names if _is_refused(name)]


@pytest.mark.parametrize(
    ("session", "doubtful"),
    [
        ({"absoluteTimeout": "1h", "idleTimeout": "1h"}, ["idleTimeout"]),
        ({"absoluteTimeout": "1h", "idleTimeout": "59m"}, []),
        ({"idleTimeout": "1h"}, []),
        ({"cookie": {"name": "__Host-cart", "path": "/shop"}}, ["cookie.path"]),
        ({"cookie": {"name": "__host-cart", "path": "/"}}, []),
        ({"cookie": {"name": "__Secure-cart", "path": "/shop"}}, []),
    ],
)
def test_what_nobody_will_see_is_told(session: dict[str, Any], doubtful: list[str]) -> None:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r0"}
    policy = world.make(
        "BackendTrafficPolicy default/p", {"targetRefs": [target], "sessionPersistence": session}
    )
    made = translate(world.many(1).replace([policy]), Settings())
    found = [one for one in made.problems if "sessionPersistence" in one.path]
    assert [one.path for one in found] == [f"spec.sessionPersistence.{one}" for one in doubtful]
    assert all(one.severity == "warning" for one in found)
