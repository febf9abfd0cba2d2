"""`edgefast limits` and the tables of `edgefast dump`: what the admin server says, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from cli.admin_server import AdminServer
from cli.calling import call
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

ALICE = {
    "limited": True,
    "shadow": False,
    "route": "ns/web",
    "rule": "each",
    "limit": "ns/users#1",
    "values": {"x-user": "al\nice", "sourceCIDR": "::1"},
    "cut": False,
    "requests": 2,
    "used": 3,
    "remaining": 0,
    "reset": 59,
    "window": 1_700_000_040,
    "unit": 60,
    "sliding": False,
}
OTHERS = [
    {**ALICE, "shadow": True, "values": {"x-user": "bob"}},
    {**ALICE, "limited": False, "remaining": 1, "used": 1, "values": {}, "cut": True, "unit": 7},
]
LISTING = {
    "store": "redis",
    "table": "v1",
    "limits": 1,
    "complete": True,
    "others": 0,
    "counters": [ALICE, *OTHERS],
}


def test_a_table_for_people() -> None:
    with AdminServer({"/limits": LISTING}) as server:
        outcome = call("limits", "--admin", server.address)
    assert (outcome.status, outcome.err) == (0, "")
    assert [line.split() for line in outcome.out.splitlines()] == [
        "STATE ROUTE RULE LIMIT VALUES REQUESTS USED LEFT RESET WINDOW".split(),
        "limited ns/web each ns/users#1 x-user=al\\nice, sourceCIDR=::1 2 per Minute 3 0 59s "
        "2023-11-14T22:14:00Z".split(),
        "shadow ns/web each ns/users#1 x-user=bob 2 per Minute 3 0 59s 2023-11-14T22:14:00Z".split(),
        "ns/web each ns/users#1 ... 2 per 7 1 1 59s 2023-11-14T22:14:00Z".split(),
    ]


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_values_for_programs(output: str, load: Any) -> None:
    with AdminServer({"/limits?limited=1": LISTING}) as server:
        outcome = call("limits", "--limited", "-o", output, "--admin", server.address)
        assert server.asked == ["/limits?limited=1"]
    assert outcome.status == 0
    assert load(outcome.out) == LISTING


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"limits": 0}, "no rule of the applied table has rate limits"),
        ({"complete": False}, "more counters exist than are shown"),
        ({"others": 4}, "4 counters belong to no limit of this table"),
    ],
)
def test_notes_stand_beside_the_table(change: dict[str, Any], note: str) -> None:
    with AdminServer({"/limits": {**LISTING, **change}}) as server:
        outcome = call("limits", "--admin", server.address)
        plain = call("limits", "-o", "json", "--admin", server.address)
    assert (outcome.status, outcome.err) == (0, note + "\n")
    assert note not in outcome.out
    assert plain.err == ""


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            (503, b"the store does not answer: Connection refused\n"),
            "answered 503 to /limits: the store does not answer: Connection refused",
        ),
        ((421, b"refused: not a name\x1b\n"), "answered 421 to /limits: refused: not a name\\x1b"),
        (
            (404, b"not found; this server has these paths:\nGET /dump\n"),
            "answered 404 to /limits: check that --admin names an edgefast admin server",
        ),
        ((200, b"<html>"), "did not answer /limits with JSON"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--limited",)])
def test_what_is_wrong_is_one_line(
    answer: tuple[int, bytes], text: str, options: tuple[str, ...]
) -> None:
    with AdminServer({"/limits": answer, "/limits?limited=1": answer}) as server:
        outcome = call("limits", *options, "--admin", server.address)
        assert outcome.status == 1
        assert outcome.err == f"Error: {server.address} {text}\n"
        assert outcome.out == ""


def test_nobody_there() -> None:
    outcome = call("limits", "--admin", f"127.0.0.1:{free_port()}")
    assert outcome.status == 1
    assert "no proxy answers at " in outcome.err
    assert call("limits", "--admin", "19000").status == 2


# --- dump ---------------------------------------------------------------------------------------


def dump_of(stores: list[Any], *limits: Any) -> Any:
    agent = {"version": "1", "pid": 1, "phase": "serving", "ready": True}
    workers = [
        {
            "worker": number,
            "pid": number + 2,
            "restarts": 0,
            "version": "v",
            **({"engine": {"rate_limits": one}} if one else {"error": "no answer in time"}),
        }
        for number, one in enumerate(limits)
    ]
    empty: dict[str, list[Any]] = {
        name: [] for name in ("listeners", "virtual_hosts", "clusters", "secrets", "problems")
    }
    table = {"version": "v", "resources": 1, "accepted": "now", "refused": []}
    return {"agent": agent, "workers": workers, "table": table, "limit_stores": stores, **empty}


REDIS = {
    "name": "store",
    "version": "abc",
    "kind": "redis",
    "mode": "sentinel",
    "addresses": ["s1:26379", "s2:26379"],
    "credentials": "<redacted>",
}


def limits_of(**changes: Any) -> Any:
    store = {"kind": "redis", "available": True, "connected": True, "errors": {}, **changes}
    return {"store": store, "fail_closed": False, "spent": 0}


def test_dump_tells_how_each_worker_gets_on_with_the_store() -> None:
    down = {"connected": False, "available": False, "errors": {"timeout": 3, "connect": 1}}
    value = dump_of([REDIS], limits_of(), limits_of(**down), None)
    with AdminServer({"/dump": value}) as server:
        outcome = call("dump", "-o", "table", "--admin", server.address)
    assert outcome.status == 0
    sections = outcome.out.split("\n\n")
    stores, states = ([line.split() for line in part.splitlines()] for part in sections[-2:])
    assert stores[1:] == [["redis", "sentinel", "s1:26379,", "s2:26379", "abc"]]
    assert states[1:] == [
        "0 redis connected pass none".split(),
        "1 redis not connected, not asked pass timeout 3, connect 1".split(),
    ]


def test_dump_of_shared_memory_and_of_no_limits() -> None:
    memory = {
        "name": "store",
        "version": "abc",
        "kind": "memory",
        "mode": "single",
        "addresses": [],
    }
    state = {"store": "memory", "fail_closed": True, "spent": 0}
    with AdminServer({"/dump": dump_of([memory], state)}) as server:
        out = call("dump", "-o", "table", "--admin", server.address).out
    assert ["memory", "shared", "by", "the", "workers", "abc"] in map(str.split, out.splitlines())
    assert out.splitlines()[-1].split() == ["0", "memory", "500"]
    with AdminServer({"/dump": dump_of([], state)}) as server:
        out = call("dump", "-o", "table", "--admin", server.address).out
    assert "LIMIT STORE" not in out and "COUNTS IN" not in out


def test_dump_sums_what_workers_do_and_not_what_all_of_them_know() -> None:
    """Ejections are in one place of all workers."""
    state = {"store": "memory", "fail_closed": True, "spent": 0}
    value = dump_of([], state, state)
    for active, worker in enumerate(value["workers"], 1):
        one = {"address": "10.0.0.1:80", "healthy": False, "active": active, "idle": 1}
        worker["engine"]["clusters"] = [{"name": "c", "endpoints": [one | {"ejections": 4}]}]
    with AdminServer({"/dump": value}) as server:
        out = call("dump", "-o", "table", "--admin", server.address).out
    assert ["c", "10.0.0.1:80", "False", "3", "2", "4"] in [
        [word for word in line.split() if word] for line in out.splitlines()
    ]


@pytest.mark.parametrize(("failures", "healthy"), [(0, "True"), (2, "True"), (25, "False")])
def test_dump_shows_endpoints_that_fail_and_clusters_without_requests(
    failures: int, healthy: str
) -> None:
    state = {"store": "memory", "fail_closed": True, "spent": 0}
    value = dump_of([], state)
    one = {"address": "10.0.0.1:80", "healthy": True, "active": 0, "idle": 0, "ejections": 0}
    clusters = [{"name": "c", "endpoints": [one | {"failures": failures}]}]
    value["workers"][0]["engine"]["clusters"] = clusters
    value["clusters"] = [{"name": "c"}, {"name": "quiet"}]
    with AdminServer({"/dump": value}) as server:
        out = call("dump", "-o", "table", "--admin", server.address).out
    rows = [line.split() for line in out.splitlines()]
    assert ["c", "10.0.0.1:80", healthy, "0", "0", "0"] in rows
    assert ["quiet", "unused"] in rows
