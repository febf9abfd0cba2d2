"""The example of load balancing: one user has one endpoint, turns go round, a cookie leads back to where it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.running import Example, curl

pytestmark = pytest.mark.wire


def where(run: Example, path: str, header: str = "") -> tuple[str, str]:
    """The endpoint that answered, and the cookie that its client is given."""
    more = f"-H '{header}'" if header else ""
    status, headers, body = curl(f"curl http://127.0.0.1:{run.ports[8080]}{path} {more}")
    assert status == 200, run.log
    return json.loads(body)["endpoint"], headers.get("set-cookie", "")


def test_endpoints(tmp_path: Path) -> None:
    with Example("loadbalancing.yaml", tmp_path) as run:
        users = {user: where(run, "/users", f"x-user: {user}") for user in "abcdefghijklmnop"}
        for user, place in users.items():
            assert where(run, "/users", f"x-user: {user}") == place
        assert len(set(users.values())) == 3
        assert len({where(run, "/turns")[0] for _ in range(3)}) == 3
        for _ in range(5):
            place, given = where(run, "/cart")
            pair, _, attributes = given.partition(";")
            assert attributes == " Max-Age=3600; HttpOnly; Path=/; SameSite=Lax"
            assert where(run, "/cart", f"cookie: {pair}") == (place, "")
