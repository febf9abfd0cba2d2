"""The example of sessions: each rule's clients stay, by what it says, and a restarted proxy knows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.running import Example, curl

pytestmark = pytest.mark.wire


def ask(run: Example, path: str, header: str = "") -> tuple[str, dict[str, str]]:
    """The endpoint that answered, and the headers of the answer."""
    more = f"-H '{header}'" if header else ""
    status, headers, body = curl(f"curl http://127.0.0.1:{run.ports[8080]}{path} {more}")
    assert status == 200, run.log
    return json.loads(body)["endpoint"], dict(headers)


def test_sessions(tmp_path: Path) -> None:
    with Example("sessions.yaml", tmp_path) as run:
        for path, name, attributes in (
            ("/cart", "cart", " Path=/cart; Max-Age=28800; HttpOnly; SameSite=Strict"),
            ("/", "place", " Path=/; HttpOnly; SameSite=Strict"),
        ):
            for _ in range(4):
                place, headers = ask(run, path)
                pair, _, said = headers["set-cookie"].partition(";")
                assert (pair.partition("=")[0], said) == (name, attributes)
                for _ in range(3):
                    again, headers = ask(run, path, f"cookie: {pair}")
                    # Of the policy's, which says how long it may rest, each answer tells anew.
                    assert again == place and ("set-cookie" in headers) == (name == "place")
        place, headers = ask(run, "/api")
        for _ in range(3):
            assert ask(run, "/api", f"x-place: {headers['x-place']}")[0] == place
