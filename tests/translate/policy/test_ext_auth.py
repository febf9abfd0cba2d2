"""extAuth: each header of `keyHeaders` is in question and key, or the policy is refused and the message names the header."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.translate import Settings, Translation, translate
from tests.translate import world
from tests.translate.policy.site import raw, target

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


def test_a_key_of_nothing_is_refused_and_a_narrow_one_told() -> None:
    def told(keys: list[str], **http: Any) -> tuple[list[str], Translation]:
        service = {"backendRef": {"name": "web", "port": 80}, **http}
        ext = {"http": service, "headersToExtAuth": ["cookie", "Authorization"],
               "cache": {"ttl": "5s", "keyHeaders": keys}}  # fmt: skip
        spec = raw(targetRefs=[target("r0")], extAuth=ext)
        made = translate(
            world.many(1).replace([decode_api_object(spec, "SecurityPolicy")]), Settings()
        )
        return [str(one) for one in made.problems], made

    problems, made = told([])
    assert any("keyHeaders" in one and "Required" in one for one in problems)
    assert all(one.status == 500 for one in made.ir.fleets[0].policies)
    problems, made = told(["x-user"])
    assert any("keyHeaders" in one and "not include cookie," in one for one in problems)
    assert all(one.status == 0 for one in made.ir.fleets[0].policies)
    assert not any("without" in one for one in told(["Cookie"])[0])
    # What stands behind a question mark may be a token.
    problems, _ = told(["cookie"], pathOverride="/x y?token=secret")
    assert problems and "secret" not in " ".join(problems)
