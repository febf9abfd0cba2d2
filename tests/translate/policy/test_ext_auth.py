"""extAuth: each header of `keyHeaders` is in question and key, or the policy is refused and the message names the header."""

from __future__ import annotations

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.translate import Settings, translate
from tests.translate import world
from tests.translate.policy.test_fail_closed import raw, target

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("shown", "keys", "path"),
    [
        ([], ["via"], "cache.keyHeaders[0]"),
        ([], ["cookie", "X-Edge-User"], "cache.keyHeaders[1]"),
        ([], ["cookie", "x_forwarded_for"], "cache.keyHeaders[1]"),
        (["content_length"], None, "headersToExtAuth[0]"),
        ([], ["X-Request-ID"], "cache.keyHeaders[0]"),
        (["via"], None, "headersToExtAuth[0]"),
        (["x-edge-internal", "x-edge-user"], None, "headersToExtAuth[1]"),
        (["X-Request-ID"], None, "headersToExtAuth[0]"),
        (
            [],
            ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-edge-external-address"],
            "",
        ),
        (["x-forwarded-for", "x-request-id"], ["x-forwarded-for"], ""),
    ],
)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_key_has_every_header_that_it_names(
    protocol: str, shown: list[str], keys: list[str] | None, path: str
) -> None:
    cache = {"ttl": "5s", **({"keyHeaders": keys} if keys else {})}
    ext = {
        protocol: {"backendRef": {"name": "web", "port": 80}},
        "headersToExtAuth": shown,
        "cache": cache,
    }
    spec = raw(targetRefs=[target("r0")], extAuth=ext)
    made = translate(world.many(1).replace([decode_api_object(spec, "SecurityPolicy")]), Settings())
    (unit,) = made.ir.fleets[0].policies
    errors = [one for one in made.problems if one.severity == "error"]
    if path:
        assert unit.status == 500
        assert any(f"spec.extAuth.{path}" in str(one) for one in errors)
    else:
        assert unit.status == 0 and not errors
