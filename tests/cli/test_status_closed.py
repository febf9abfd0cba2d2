"""`edgefast status` of a proxy whose table has listeners that only keep their place."""

from __future__ import annotations

import orjson
import pytest

from cli.calling import call
from cli.test_status import ANSWERS, DUMP, AdminServer


@pytest.mark.pure
def test_listeners_that_only_keep_their_place_are_not_programmed() -> None:
    """They are in the table, and on a port that is open."""
    objects = {
        "gateways": [
            {"name": "ns/gw", "class": "edge", "accepted": "True"},
            {"name": "ns/wrong", "class": "edge", "accepted": "False"},
        ],
        "closed": [{"name": "ns/wrong/near"}, {"name": "ns/gw/set-ns/set/more"}],
    }
    near = {"name": "ns/wrong/near", "port": 80, "bind_port": 80, "protocol": "HTTP"}
    dump = {**DUMP, "listeners": [*DUMP["listeners"], near], "objects": objects}
    with AdminServer({**ANSWERS, "/dump": dump}) as server:
        done = call("status", "--admin", server.address, "--interval", "0", "-o", "json")
    told = orjson.loads(done.out)
    assert {f"{one['gateway']}/{one['name']}": one["programmed"] for one in told["listeners"]} == {
        "ns/gw/http": "True",
        "ns/gw/set-ns/set/more": "False",
        "ns/wrong/near": "False",
    }
    assert [(one["name"], one["programmed"]) for one in told["gateways"]] == [
        ("ns/gw", "True"),
        ("ns/wrong", "False"),
    ]
